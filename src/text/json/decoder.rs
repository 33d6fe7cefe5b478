//! The `decoder` of `tokenizer.json`: how tokens become text again.

use serde_json::Value;

use super::super::blueprint::{LeadingSpace, Spelling};
use super::{kind_of, malformed};
use crate::error::{Error, Result, unsupported};

/// What a decoder does, as far as byte-pair tokenizers need it.
pub(super) struct Decoder {
    pub spelling: Spelling,
    pub leading_space: LeadingSpace,
    /// Whether `<0x0A>` stands for a byte.
    pub byte_tokens: bool,
}

/// Reads a decoder: `ByteLevel`, `Metaspace`, or the sequence of `Replace`, `ByteFallback`, `Fuse` and
/// `Strip` that SentencePiece vocabularies are converted to.
///
/// # Errors
/// `unsupported_format` for any other decoder, and for none: tokens could not become text.
pub(super) fn read(value: Option<&Value>) -> Result<Decoder> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Err(unsupported!("The tokenizer has no decoder, so its tokens cannot become text."));
    };
    let mut decoder = Decoder {
        spelling: Spelling::Plain { replacements: Vec::new() },
        leading_space: LeadingSpace::Keep,
        byte_tokens: false,
    };
    let steps = match value.get("decoders") {
        Some(steps) => {
            steps.as_array().ok_or_else(|| malformed("decoder", &"decoders is not a list"))?.as_slice()
        }
        None => std::slice::from_ref(value),
    };
    let mut fused = false;
    for step in steps {
        match kind_of(step, "decoder")? {
            "ByteLevel" if steps.len() == 1 => decoder.spelling = Spelling::ByteLevel,
            "ByteFallback" if !fused => decoder.byte_tokens = true,
            "Fuse" => fused = true,
            "Replace" if !fused => add_replacement(&mut decoder, replacement(step)?),
            "Metaspace" if !fused => {
                add_replacement(&mut decoder, (text(step, "replacement")?, " ".to_owned()));
                if strips_prefix(step) {
                    decoder.leading_space = LeadingSpace::DropFromFirstToken;
                }
            }
            "Strip" if fused => decoder.leading_space = strip(step)?,
            other => return Err(unsupported_step(other)),
        }
    }
    Ok(decoder)
}

fn add_replacement(decoder: &mut Decoder, replacement: (String, String)) {
    if let Spelling::Plain { replacements } = &mut decoder.spelling {
        replacements.push(replacement);
    }
}

fn replacement(step: &Value) -> Result<(String, String)> {
    let pattern = step.get("pattern").and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
    match pattern.filter(|pattern| !pattern.is_empty()) {
        Some(pattern) => Ok((pattern.to_owned(), text(step, "content")?)),
        None => Err(unsupported_step("Replace with a regular expression")),
    }
}

/// Whether the space that encoding put in front of the text is to be dropped.
fn strips_prefix(step: &Value) -> bool {
    let never = step.get("prepend_scheme").and_then(Value::as_str) == Some("never");
    let no_prefix = step.get("add_prefix_space").and_then(Value::as_bool) == Some(false);
    !never && !no_prefix
}

fn strip(step: &Value) -> Result<LeadingSpace> {
    let number = |key| {
        step.get(key).and_then(Value::as_u64).ok_or_else(|| malformed("decoder", &"Strip without a count"))
    };
    let content = text(step, "content")?;
    let mut characters = content.chars();
    let (Some(content), None) = (characters.next(), characters.next()) else {
        return Err(malformed("decoder", &"Strip takes one character"));
    };
    if number("stop")? != 0 {
        return Err(unsupported_step("Strip at the end of the text"));
    }
    let count = usize::try_from(number("start")?).map_err(|error| malformed("decoder", &error))?;
    Ok(if count == 0 { LeadingSpace::Keep } else { LeadingSpace::Strip { content, count } })
}

fn text(step: &Value, key: &str) -> Result<String> {
    step.get(key)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| malformed("decoder", &format_args!("{key} is not text")))
}

fn unsupported_step(step: &str) -> Error {
    unsupported!(
        "The tokenizer's decoder step {step:?} is not supported here; supported are ByteLevel, Metaspace, and \
         Replace, ByteFallback, Fuse, Strip in this order."
    )
}
