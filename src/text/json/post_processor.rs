//! The `post_processor` of `tokenizer.json`: the special tokens around a single text.

use serde_json::Value;

use super::{kind_of, malformed};
use crate::error::{Result, unsupported};

/// Token ids before and after the text.
#[derive(Default)]
pub(super) struct Around {
    pub prefix: Vec<u32>,
    pub suffix: Vec<u32>,
}

/// # Errors
/// `unsupported_format` for a kind of post-processor that is not known, `corrupt_file` for one that
/// names tokens it does not define.
pub(super) fn read(value: Option<&Value>) -> Result<Around> {
    let mut around = Around::default();
    if let Some(value) = value.filter(|value| !value.is_null()) {
        apply(value, &mut around)?;
    }
    Ok(around)
}

/// Applies one post-processor to the result of those before it.
fn apply(value: &Value, around: &mut Around) -> Result<()> {
    match kind_of(value, "post_processor")? {
        // It changes offsets only, which nothing here uses.
        "ByteLevel" => Ok(()),
        "TemplateProcessing" => apply_template(value, around),
        "RobertaProcessing" | "BertProcessing" => {
            around.prefix.insert(0, pair_id(value, "cls")?);
            around.suffix.push(pair_id(value, "sep")?);
            Ok(())
        }
        "Sequence" => list(value, "processors")?.iter().try_for_each(|inner| apply(inner, around)),
        other => Err(unsupported!(
            "The tokenizer's post_processor {other:?} is not supported; supported are TemplateProcessing, ByteLevel, \
             RobertaProcessing, BertProcessing and Sequence."
        )),
    }
}

fn apply_template(value: &Value, around: &mut Around) -> Result<()> {
    let mut before = Vec::new();
    let mut after = Vec::new();
    let mut seen_text = false;
    for piece in list(value, "single")? {
        if let Some(special) = piece.get("SpecialToken") {
            let ids = special_ids(value, special)?;
            if seen_text {
                after.extend(ids)
            } else {
                before.extend(ids)
            }
            continue;
        }
        let names_text =
            piece.get("Sequence").and_then(|text| text.get("id")).and_then(Value::as_str) == Some("A");
        if !names_text || seen_text {
            return Err(malformed("post_processor", &"the template of a single text must name it once"));
        }
        seen_text = true;
    }
    if !seen_text {
        return Err(malformed("post_processor", &"the template of a single text does not name it"));
    }
    before.append(&mut around.prefix);
    around.prefix = before;
    around.suffix.append(&mut after);
    Ok(())
}

/// The ids of the special token that a template piece names.
fn special_ids(template: &Value, special: &Value) -> Result<Vec<u32>> {
    let name = special.get("id").and_then(Value::as_str).unwrap_or_default();
    let definition = template.get("special_tokens").and_then(|tokens| tokens.get(name));
    let Some(definition) = definition else {
        return Err(malformed("post_processor", &format_args!("the special token {name:?} is not defined")));
    };
    list(definition, "ids")?.iter().map(token_id).collect()
}

/// `key: [text, id]`.
fn pair_id(value: &Value, key: &str) -> Result<u32> {
    let pair = list(value, key)?;
    pair.get(1)
        .ok_or_else(|| malformed("post_processor", &format_args!("{key} has no id")))
        .and_then(token_id)
}

fn token_id(value: &Value) -> Result<u32> {
    value
        .as_u64()
        .and_then(|id| u32::try_from(id).ok())
        .ok_or_else(|| malformed("post_processor", &format_args!("{value} is not a token id")))
}

fn list<'value>(value: &'value Value, key: &str) -> Result<&'value [Value]> {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .ok_or_else(|| malformed("post_processor", &format_args!("{key} is not a list")))
}
