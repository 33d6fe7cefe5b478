//! What a checkpoint says about text: tokenizer, chat template, tokens with a meaning, sampling options.

use serde::Deserialize;
use serde_json::Value;

use super::metadata::Metadata;
use super::side_files::SideFiles;
use super::{GenerationDefaults, SpecialTokens, TemplateSource};
use crate::text::{GgufVocab, TokenizerSource};

/// Control tokens that end a turn or a text in the chat formats of the supported families.
const ENDINGS: [&str; 4] = ["<|eot_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>"];
/// `token_type` of control tokens in GGUF.
const CONTROL: i32 = 3;
/// Llama 3's vocabulary: `<|begin_of_text|>`, `<|end_of_text|>` and `<|eot_id|>` by id, for checkpoints
/// that come without a tokenizer.
const LLAMA3_VOCAB: usize = 128_256;
const LLAMA3_BOS: u32 = 128_000;
const LLAMA3_ENDINGS: [u32; 2] = [128_001, 128_009];

/// What [`collect`] finds.
pub(super) struct TextParts {
    pub tokenizer: Option<TokenizerSource>,
    pub template: TemplateSource,
    pub special: SpecialTokens,
    pub defaults: GenerationDefaults,
}

/// Gathers the text side of a checkpoint from GGUF metadata and side files; side files win.
pub(super) fn collect(mut side: SideFiles, metadata: Option<Metadata>, vocab_size: usize) -> TextParts {
    let vocab = metadata.as_ref().map(ids_of).unwrap_or_default();
    let mut special = SpecialTokens {
        bos: ids(&side.config["bos_token_id"]).first().copied().or(vocab.bos),
        eos: Vec::new(),
        add_bos: side.tokenizer_config["add_bos_token"].as_bool().or(vocab.add_bos),
    };
    special.eos.extend(ids(&side.config["eos_token_id"]));
    special.eos.extend(ids(&side.generation_config["eos_token_id"]));
    if let Some(metadata) = &metadata {
        let keys = ["eos_token_id", "eot_token_id"].map(|key| format!("tokenizer.ggml.{key}"));
        special.eos.extend(keys.iter().filter_map(|key| metadata.token(key)));
    }
    let gguf_vocab = metadata.map(|metadata| full_vocab(metadata, vocab));
    if let Some((vocab, _)) = &gguf_vocab {
        special.eos.extend(endings_of_gguf(vocab));
    }
    special.eos.extend(side.tokenizer.as_deref().map(endings_of_json).unwrap_or_default());
    if vocab_size == LLAMA3_VOCAB && special.bos == Some(LLAMA3_BOS) {
        special.eos.extend(LLAMA3_ENDINGS);
    }
    special.eos.retain(|id| (*id as usize) < vocab_size);
    special.eos.sort_unstable();
    special.eos.dedup();

    let template = template(&mut side, gguf_vocab.as_ref());
    let defaults = defaults(&side.generation_config);
    let tokenizer = match (side.tokenizer, gguf_vocab) {
        (Some(json), _) => Some(TokenizerSource::Json(json)),
        (None, Some((vocab, _))) if !vocab.tokens.is_empty() => Some(TokenizerSource::Gguf(Box::new(vocab))),
        _ => None,
    };
    TextParts { tokenizer, template, special, defaults }
}

/// One id or a list of them.
fn ids(value: &Value) -> Vec<u32> {
    let one = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(values) => values.iter().filter_map(one).collect(),
        value => one(value).into_iter().collect(),
    }
}

/// The scalars of `tokenizer.ggml.*`.
fn ids_of(metadata: &Metadata) -> GgufVocab {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    GgufVocab {
        model: metadata.text(&key("model")).unwrap_or_default().to_owned(),
        pre: metadata.text(&key("pre")).map(str::to_owned),
        bos: metadata.token(&key("bos_token_id")),
        eos: metadata.token(&key("eos_token_id")),
        unknown: metadata.token(&key("unknown_token_id")),
        add_bos: metadata.flag(&key("add_bos_token")),
        add_eos: metadata.flag(&key("add_eos_token")),
        add_space_prefix: metadata.flag(&key("add_space_prefix")),
        ..GgufVocab::default()
    }
}

/// The whole vocabulary, and the chat template of the file.
fn full_vocab(mut metadata: Metadata, scalars: GgufVocab) -> (GgufVocab, Option<String>) {
    let vocab = GgufVocab {
        tokens: metadata.take_texts("tokenizer.ggml.tokens"),
        scores: metadata.take_floats("tokenizer.ggml.scores"),
        token_types: metadata.take_ints("tokenizer.ggml.token_type"),
        merges: metadata.take_texts("tokenizer.ggml.merges"),
        ..scalars
    };
    (vocab, metadata.text("tokenizer.chat_template").map(str::to_owned))
}

fn endings_of_gguf(vocab: &GgufVocab) -> Vec<u32> {
    let control = |id: usize| vocab.token_types.get(id) == Some(&CONTROL);
    let tokens = vocab.tokens.iter().enumerate();
    tokens
        .filter(|(id, token)| control(*id) && ENDINGS.contains(&token.as_str()))
        .map(|(id, _)| id as u32)
        .collect()
}

/// The endings among the special tokens of a `tokenizer.json`. One that cannot be read has none here; the
/// tokenizer reports it.
fn endings_of_json(json: &[u8]) -> Vec<u32> {
    #[derive(Deserialize)]
    struct Tokenizer {
        #[serde(default)]
        added_tokens: Vec<AddedToken>,
    }
    #[derive(Deserialize)]
    struct AddedToken {
        id: u32,
        content: String,
        #[serde(default)]
        special: bool,
    }
    let Ok(tokenizer) = serde_json::from_slice::<Tokenizer>(json) else {
        return Vec::new();
    };
    let endings = tokenizer.added_tokens.into_iter();
    endings
        .filter(|token| token.special && ENDINGS.contains(&token.content.as_str()))
        .map(|token| token.id)
        .collect()
}

fn template(side: &mut SideFiles, gguf: Option<&(GgufVocab, Option<String>)>) -> TemplateSource {
    let token_text = |name: &str, id: fn(&GgufVocab) -> Option<u32>| {
        let spelled = |json: &Value| match &json[name] {
            Value::String(text) => Some(text.clone()),
            object => object["content"].as_str().map(str::to_owned),
        };
        spelled(&side.tokenizer_config).or_else(|| spelled(&side.special_tokens_map)).or_else(|| {
            let (vocab, _) = gguf?;
            vocab.tokens.get(id(vocab)? as usize).cloned()
        })
    };
    let bos_token = token_text("bos_token", |vocab| vocab.bos);
    let eos_token = token_text("eos_token", |vocab| vocab.eos);
    let jinja = side.chat_template.take();
    let jinja = jinja.or_else(|| template_of_config(&side.tokenizer_config["chat_template"]));
    let jinja = jinja.or_else(|| gguf.and_then(|(_, template)| template.clone()));
    TemplateSource { jinja, bos_token, eos_token }
}

/// `chat_template` of tokenizer_config.json: a template, or a list of named ones.
fn template_of_config(value: &Value) -> Option<String> {
    match value {
        Value::String(template) => Some(template.clone()),
        Value::Array(named) => {
            let default = named.iter().find(|entry| entry["name"] == "default");
            default.or(named.first())?["template"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

fn defaults(config: &Value) -> GenerationDefaults {
    let float = |name: &str| config[name].as_f64().map(|value| value as f32);
    let count = |name: &str| config[name].as_u64().and_then(|value| u32::try_from(value).ok());
    let common = GenerationDefaults {
        repetition_penalty: float("repetition_penalty"),
        max_new_tokens: count("max_new_tokens"),
        ..GenerationDefaults::default()
    };
    match config["do_sample"].as_bool() {
        Some(true) => GenerationDefaults {
            temperature: float("temperature"),
            top_k: count("top_k"),
            top_p: float("top_p"),
            min_p: float("min_p"),
            ..common
        },
        // Greedy decoding, as transformers does it then.
        Some(false) => GenerationDefaults { temperature: Some(0.0), ..common },
        None => common,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn endings(config: Value, generation_config: Value, vocab_size: usize) -> Vec<u32> {
        let side = SideFiles { config, generation_config, ..SideFiles::default() };
        collect(side, None, vocab_size).special.eos
    }

    #[test]
    fn llama_3_vocabularies_end_on_both_of_their_tokens() {
        let config = json!({ "bos_token_id": 128000, "eos_token_id": 128001 });
        assert_eq!(endings(config.clone(), Value::Null, 128_256), [128_001, 128_009]);
        assert_eq!(endings(config, json!({ "eos_token_id": [128009] }), 130_000), [128_001, 128_009]);
    }

    #[test]
    fn ids_that_are_no_tokens_are_dropped() {
        assert_eq!(endings(json!({ "eos_token_id": [-1, 7, 99, null, 7] }), Value::Null, 10), [7]);
        assert_eq!(endings(json!({ "eos_token_id": null }), Value::Null, 10), [0u32; 0]);
    }
}
