//! `tokenizer.ggml.*` of a GGUF file → [`Blueprint`].

use std::collections::HashSet;

use tokenizers::AddedToken;
use tokenizers::normalizers::{Prepend, Replace, Sequence};

use super::blueprint::{Blueprint, LeadingSpace, MAX_TOKEN_ID, Piece, PieceKind, Spelling};
use super::source::GgufVocab;
use super::{pre_tokenizer, sentencepiece};
use crate::error::{Result, corrupt, unsupported};

/// How SentencePiece spells a space.
const SPACE_MARK: &str = "▁";
/// Tokens that only a Llama-3 vocabulary has.
const LLAMA_3_TOKENS: [&str; 2] = ["<|begin_of_text|>", "<|eot_id|>"];

/// Tokens that end a turn or a text in the families that chat. Some converters mark them as normal
/// text; a chat would then never end. llama.cpp corrects the same tokens.
const END_TOKENS: [&str; 6] =
    ["<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>"];

/// Checks the metadata and describes the tokenizer.
///
/// # Errors
/// `unsupported_format` for a tokenizer model or pre-tokenizer that is not known, `corrupt_file` for
/// lists whose lengths differ, merges of unknown tokens and ids outside the vocabulary.
pub(super) fn read(vocab: &GgufVocab) -> Result<Blueprint> {
    check_lengths(vocab)?;
    match vocab.model.as_str() {
        "gpt2" => read_byte_level(vocab),
        "llama" => read_sentencepiece(vocab),
        "" => Err(corrupt!(
            "The file has no tokenizer (tokenizer.ggml.model is missing); use the file that the model's publisher made."
        )),
        other => Err(unsupported!(
            "The file's tokenizer {other:?} (tokenizer.ggml.model) is not supported; supported are gpt2 and llama."
        )),
    }
}

fn check_lengths(vocab: &GgufVocab) -> Result<()> {
    let count = vocab.tokens.len();
    if count == 0 {
        return Err(corrupt!("The file's tokenizer has no tokens; download the file again."));
    }
    if count > MAX_TOKEN_ID as usize + 1 {
        return Err(corrupt!(
            "The file's tokenizer has {count} tokens; at most {} are possible.",
            MAX_TOKEN_ID + 1
        ));
    }
    if !vocab.token_types.is_empty() && vocab.token_types.len() != count {
        return Err(corrupt!(
            "The file's tokenizer has {count} tokens but {} token types; download the file again.",
            vocab.token_types.len()
        ));
    }
    let ids = [("bos", vocab.bos), ("eos", vocab.eos), ("unknown", vocab.unknown)];
    for (name, id) in ids {
        if let Some(id) = id.filter(|id| *id as usize >= count) {
            return Err(corrupt!(
                "The file's {name}_token_id {id} is not in its vocabulary of {count} tokens."
            ));
        }
    }
    Ok(())
}

fn read_byte_level(vocab: &GgufVocab) -> Result<Blueprint> {
    let pre_tokenizer = match vocab.pre.as_deref() {
        Some(name) => pre_tokenizer::by_name(name)?,
        None => pre_tokenizer::for_unnamed(is_llama_3(vocab))?,
    };
    let merges = vocab.merges.iter().map(|merge| split_merge(merge)).collect::<Result<_>>()?;
    let pieces = pieces(vocab)?;
    Ok(Blueprint {
        added: added_tokens(&pieces),
        pieces,
        merges,
        unknown: None,
        fuse_unknown: false,
        byte_fallback: false,
        ignore_merges: pre_tokenizer.ignore_merges,
        normalizer: pre_tokenizer.normalizer,
        pre_tokenizer: Some(pre_tokenizer.splitter),
        spelling: Spelling::ByteLevel,
        leading_space: LeadingSpace::Keep,
        prefix: around(vocab.bos, vocab.add_bos.unwrap_or(pre_tokenizer.add_bos)),
        suffix: around(vocab.eos, vocab.add_eos.unwrap_or(false)),
    })
}

fn read_sentencepiece(vocab: &GgufVocab) -> Result<Blueprint> {
    if vocab.scores.len() != vocab.tokens.len() {
        return Err(corrupt!(
            "The file's tokenizer has {} tokens but {} scores; download the file again.",
            vocab.tokens.len(),
            vocab.scores.len()
        ));
    }
    let pieces = pieces(vocab)?;
    let normal: Vec<(u32, &str)> = (0..)
        .zip(&pieces)
        .filter(|(_, piece)| piece.kind == PieceKind::Text)
        .map(|(id, piece)| (id, piece.text.as_str()))
        .collect();
    let merges = sentencepiece::merges(&normal, &vocab.scores)?;
    let add_space = vocab.add_space_prefix.unwrap_or(true);
    let mut normalizers = vec![];
    if add_space {
        normalizers.push(Prepend::new(SPACE_MARK.to_owned()).into());
    }
    let mark_spaces = Replace::new(" ", SPACE_MARK)
        .map_err(|error| corrupt!("The tokenizer's space rule does not compile: {error}."))?;
    normalizers.push(mark_spaces.into());
    let unknown = vocab.unknown.map(|id| vocab.tokens[id as usize].clone());
    Ok(Blueprint {
        added: added_tokens(&pieces),
        byte_fallback: pieces.iter().any(|piece| matches!(piece.kind, PieceKind::Byte(_))),
        pieces,
        merges,
        unknown: unknown.filter(|text| !text.is_empty()),
        fuse_unknown: true,
        ignore_merges: false,
        normalizer: Some(Sequence::new(normalizers).into()),
        pre_tokenizer: None,
        spelling: Spelling::Plain { replacements: vec![(SPACE_MARK.to_owned(), " ".to_owned())] },
        leading_space: if add_space {
            LeadingSpace::Strip { content: ' ', count: 1 }
        } else {
            LeadingSpace::Keep
        },
        prefix: around(vocab.bos, vocab.add_bos.unwrap_or(true)),
        suffix: around(vocab.eos, vocab.add_eos.unwrap_or(false)),
    })
}

/// `id` if there is such a token and it is to be added.
fn around(id: Option<u32>, add: bool) -> Vec<u32> {
    id.filter(|_| add).into_iter().collect()
}

fn is_llama_3(vocab: &GgufVocab) -> bool {
    LLAMA_3_TOKENS.iter().all(|wanted| vocab.tokens.iter().any(|token| token == wanted))
}

/// `"left right"`. A space inside a token is spelled otherwise, but `left` may itself be one.
fn split_merge(merge: &str) -> Result<(String, String)> {
    let space = merge.char_indices().skip(1).find(|(_, character)| *character == ' ');
    let Some((at, _)) = space.filter(|(at, _)| at + 1 < merge.len()) else {
        return Err(corrupt!(
            "The tokenizer's merge {merge:?} is not a pair of tokens; download the file again."
        ));
    };
    Ok((merge[..at].to_owned(), merge[at + 1..].to_owned()))
}

fn pieces(vocab: &GgufVocab) -> Result<Vec<Piece>> {
    let controls: HashSet<u32> = [vocab.bos, vocab.eos].into_iter().flatten().collect();
    (0..)
        .zip(&vocab.tokens)
        .map(|(id, text)| {
            let kind = if text.is_empty() {
                PieceKind::Unused
            } else if controls.contains(&id) || END_TOKENS.contains(&text.as_str()) {
                PieceKind::Special
            } else {
                kind(vocab, id, text)?
            };
            Ok(Piece { text: text.clone(), kind })
        })
        .collect()
}

fn kind(vocab: &GgufVocab, id: u32, text: &str) -> Result<PieceKind> {
    let Some(token_type) = vocab.token_types.get(id as usize) else {
        // A file without types still marks its control tokens by their shape.
        let is_control = text.starts_with("<|") && text.ends_with("|>");
        return Ok(if is_control { PieceKind::Special } else { PieceKind::Text });
    };
    match token_type {
        1 => Ok(PieceKind::Text),
        2 | 3 => Ok(PieceKind::Special),
        4 => Ok(PieceKind::Literal),
        5 => Ok(PieceKind::Unused),
        6 => byte_token(text).map(PieceKind::Byte).ok_or_else(|| {
            corrupt!("Token {id} ({text:?}) is marked as a byte but does not name one (\"<0x0A>\").")
        }),
        other => Err(corrupt!("Token {id} ({text:?}) has the unknown type {other}; types are 1 to 6.")),
    }
}

/// The byte that SentencePiece spells `<0x0A>`.
pub(super) fn byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// The tokens that are matched in text as they are spelled, before anything else is done to it.
fn added_tokens(pieces: &[Piece]) -> Vec<AddedToken> {
    pieces
        .iter()
        .filter(|piece| matches!(piece.kind, PieceKind::Literal | PieceKind::Special))
        .map(|piece| {
            AddedToken::from(piece.text.as_str(), piece.kind == PieceKind::Special).normalized(false)
        })
        .collect()
}
