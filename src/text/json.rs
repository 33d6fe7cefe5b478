//! Hugging Face `tokenizer.json` → [`Blueprint`].
//!
//! The file is taken apart here rather than handed to the `tokenizers` crate as a whole: the crate
//! panics on some malformed files, renumbers added tokens whose ids have gaps, and has components that
//! byte-pair tokenizers do not use. Only the normalizer and the pre-tokenizer go to the crate, after
//! their kinds have been checked.

mod decoder;
mod file;
mod post_processor;

use std::collections::HashMap;

use serde_json::Value;
use tokenizers::AddedToken;

use self::file::{AddedTokenEntry, ModelEntry, TokenizerFile, Vocabulary};
use super::blueprint::{Blueprint, MAX_TOKEN_ID, Piece, PieceKind};
use super::gguf::byte_token;
use crate::error::{Error, Result, corrupt, unsupported};

/// The components that byte-pair tokenizers use and that do not fail on any text.
const NORMALIZERS: [&str; 10] =
    ["NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Lowercase", "Strip", "StripAccents", "Sequence"];
const PRE_TOKENIZERS: [&str; 8] =
    ["ByteLevel", "Split", "Digits", "Metaspace", "Punctuation", "Whitespace", "WhitespaceSplit", "Sequence"];

/// Checks the file and describes the tokenizer.
///
/// # Errors
/// `corrupt_file` for text that is not JSON, is truncated or contradicts itself; `unsupported_format`
/// for a model other than BPE or a component that Sterna does not run.
pub(super) fn read(bytes: &[u8]) -> Result<Blueprint> {
    let file = TokenizerFile::parse(bytes)?;
    check_model(&file.model)?;
    let mut pieces = vocabulary(&file.model)?;
    let decoder = decoder::read(file.decoder.as_ref())?;
    if decoder.byte_tokens {
        for piece in &mut pieces {
            if let Some(byte) = byte_token(&piece.text) {
                piece.kind = PieceKind::Byte(byte);
            }
        }
    }
    let added = add_tokens(&mut pieces, &file.model.vocab, file.added_tokens)?;
    let around = post_processor::read(file.post_processor.as_ref())?;
    Ok(Blueprint {
        pieces,
        merges: file.model.merges.into_iter().map(|merge| (merge.left, merge.right)).collect(),
        unknown: file.model.unk_token,
        fuse_unknown: file.model.fuse_unk.unwrap_or(false),
        byte_fallback: file.model.byte_fallback.unwrap_or(false),
        ignore_merges: file.model.ignore_merges.unwrap_or(false),
        added,
        normalizer: component(file.normalizer, "normalizer", &NORMALIZERS)?,
        pre_tokenizer: component(file.pre_tokenizer, "pre_tokenizer", &PRE_TOKENIZERS)?,
        spelling: decoder.spelling,
        leading_space: decoder.leading_space,
        prefix: around.prefix,
        suffix: around.suffix,
    })
}

fn check_model(model: &ModelEntry) -> Result<()> {
    if model.dropout.is_some_and(|dropout| dropout != 0.0) {
        return Err(unsupported!(
            "The tokenizer drops merges at random (dropout); that is for training only."
        ));
    }
    let affixes = [
        ("continuing_subword_prefix", &model.continuing_subword_prefix),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ];
    for (name, affix) in affixes {
        if affix.as_ref().is_some_and(|affix| !affix.is_empty()) {
            return Err(unsupported!("The tokenizer marks parts of words ({name}), which is not supported."));
        }
    }
    Ok(())
}

fn vocabulary(model: &ModelEntry) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for (text, id) in &model.vocab.0 {
        place(&mut pieces, *id, text, PieceKind::Text)?;
    }
    Ok(pieces)
}

/// Puts a token at its id, growing the list up to [`MAX_TOKEN_ID`].
fn place(pieces: &mut Vec<Piece>, id: u32, text: &str, kind: PieceKind) -> Result<()> {
    if id > MAX_TOKEN_ID {
        return Err(corrupt!(
            "The tokenizer's token {text:?} has the id {id}; at most {MAX_TOKEN_ID} is possible."
        ));
    }
    let index = id as usize;
    if pieces.len() <= index {
        pieces.resize_with(index + 1, || Piece { text: String::new(), kind: PieceKind::Unused });
    }
    let piece = &mut pieces[index];
    if !piece.text.is_empty() && piece.text != text {
        return Err(corrupt!("The tokenizer gives the id {id} to both {:?} and {text:?}.", piece.text));
    }
    *piece = Piece { text: text.to_owned(), kind };
    Ok(())
}

/// Marks the added tokens, at the id that the model gives them or else at their own.
fn add_tokens(
    pieces: &mut Vec<Piece>,
    vocabulary: &Vocabulary,
    entries: Vec<AddedTokenEntry>,
) -> Result<Vec<AddedToken>> {
    let known: HashMap<&str, u32> = vocabulary.0.iter().map(|(text, id)| (text.as_str(), *id)).collect();
    let mut added = Vec::with_capacity(entries.len());
    for entry in entries {
        if entry.content.is_empty() {
            continue;
        }
        let kind = if entry.special { PieceKind::Special } else { PieceKind::Literal };
        let id = known.get(entry.content.as_str()).copied().unwrap_or(entry.id);
        place(pieces, id, &entry.content, kind)?;
        added.push(entry.into_token());
    }
    Ok(added)
}

/// A part of the file that the `tokenizers` crate runs, if it is of a kind in `known`.
fn component<T: serde::de::DeserializeOwned>(
    value: Option<Value>,
    name: &str,
    known: &[&str],
) -> Result<Option<T>> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    check_component(&value, name, known)?;
    serde_json::from_value(value).map(Some).map_err(|error| malformed(name, &error))
}

fn check_component(value: &Value, name: &str, known: &[&str]) -> Result<()> {
    let kind = kind_of(value, name)?;
    if !known.contains(&kind) {
        return Err(unsupported!(
            "The tokenizer's {name} {kind:?} is not supported; supported are {}.",
            known.join(", ")
        ));
    }
    let empty_pattern = value.get("pattern").is_some_and(|pattern| {
        pattern.get("String").and_then(Value::as_str) == Some("")
            || pattern.get("Regex").and_then(Value::as_str) == Some("")
    });
    if empty_pattern {
        return Err(corrupt!("The tokenizer's {name} has an empty pattern; download the model again."));
    }
    for key in ["normalizers", "pretokenizers"] {
        for inner in value.get(key).and_then(Value::as_array).into_iter().flatten() {
            check_component(inner, name, known)?;
        }
    }
    Ok(())
}

/// The `type` of a component.
fn kind_of<'value>(value: &'value Value, name: &str) -> Result<&'value str> {
    value
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(|| corrupt!("The tokenizer's {name} has no type; download the model again."))
}

fn malformed(name: &str, error: &dyn std::fmt::Display) -> Error {
    corrupt!("The tokenizer's {name} is malformed ({error}); download the model again.")
}
