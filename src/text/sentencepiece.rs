//! SentencePiece's merge rule as a list of merges.
//!
//! SentencePiece (and llama.cpp's `llama` tokenizer) joins, again and again, the two neighbours whose
//! union is the vocabulary's best-scored piece. A byte-pair encoder does the same when every way to
//! cut every piece in two is a merge and the merges are ordered by the score of the piece, which is
//! how transformers converts these vocabularies.

use std::collections::HashMap;

use crate::error::{Result, corrupt};

/// Longer pieces do not occur (SentencePiece trains at most 16 characters) and would make the number
/// of cuts quadratic in the size of the file.
const MAX_PIECE_BYTES: usize = 1024;

/// The merges that make a byte-pair encoder follow `scores`. `pieces` are `(id, text)` of the normal
/// tokens.
///
/// # Errors
/// `corrupt_file` for a piece of more than 1024 bytes.
pub(super) fn merges(pieces: &[(u32, &str)], scores: &[f32]) -> Result<Vec<(String, String)>> {
    let ids: HashMap<&str, u32> = pieces.iter().map(|(id, text)| (*text, *id)).collect();
    let mut by_score: Vec<&(u32, &str)> = pieces.iter().collect();
    by_score.sort_by(|(a, _), (b, _)| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b)));

    let mut merges = Vec::new();
    for (id, text) in by_score {
        if text.len() > MAX_PIECE_BYTES {
            return Err(corrupt!(
                "Token {id} of the tokenizer has {} bytes; at most {MAX_PIECE_BYTES} are possible.",
                text.len()
            ));
        }
        let mut cuts: Vec<(u32, u32, usize)> = text
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| Some((*ids.get(&text[..at])?, *ids.get(&text[at..])?, at)))
            .collect();
        cuts.sort_unstable();
        merges.extend(cuts.into_iter().map(|(_, _, at)| (text[..at].to_owned(), text[at..].to_owned())));
    }
    Ok(merges)
}
