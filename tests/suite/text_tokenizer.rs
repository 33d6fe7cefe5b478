//! Tokenizers against ids from other implementations.

use serde::Deserialize;
use sterna::text::{ChatTemplate, GgufVocab, Message, RenderOptions, Tokenizer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::{from_gguf, from_json};

const LLAMA_3_STRINGS: &str = include_str!("../fixtures/llama3_tokenizer_strings.json");
const BIT_7M_TOKENIZER: &[u8] = include_bytes!("../../models/bit-7m/tokenizer.json");
const BIT_7M_CONFIG: &str = include_str!("../../models/bit-7m/tokenizer_config.json");
const BIT_7M_REFERENCE: &str = include_str!("../fixtures/bit-7m-reference.json");

/// A text and the ids that the reference implementation gives it.
#[derive(Deserialize)]
struct Encoded {
    text: String,
    ids: Vec<u32>,
}

/// Llama 3 from tokenizer.json: the ids of tiktoken and of the JavaScript tokenizer.
pub fn llama_3_from_json(tokenizer_json: &[u8]) {
    let tokenizer = from_json(tokenizer_json).unwrap();
    check_llama_3(&tokenizer);
}

/// Llama 3 from GGUF metadata, with the pre-tokenizer named and, as in the official
/// bitnet-b1.58-2B-4T file, not named.
pub fn llama_3_from_gguf(tokenizer_json: &[u8]) {
    for pre in [Some("llama-bpe"), Some("falcon3"), None] {
        let vocab = GgufVocab { pre: pre.map(str::to_owned), ..gguf_of(tokenizer_json) };
        check_llama_3(&from_gguf(vocab).unwrap());
    }
}

fn check_llama_3(tokenizer: &Tokenizer) {
    assert_eq!(tokenizer.vocab_size(), 128_256);
    assert_eq!(tokenizer.token_id("<|eot_id|>"), Some(128_009));
    assert!(tokenizer.is_special(128_009) && !tokenizer.is_special(100));
    let strings: Vec<Encoded> = serde_json::from_str(LLAMA_3_STRINGS).unwrap();
    assert_eq!(strings.len(), 213);
    for Encoded { text, ids } in strings {
        assert_eq!(tokenizer.encode(&text, true).unwrap(), ids, "{text:?}");
        assert_eq!(tokenizer.encode(&text, false).unwrap(), ids[1..], "{text:?}");
        assert_eq!(tokenizer.decode(&ids, true).unwrap(), text);
    }
}

/// The fields of tokenizer.json as a converter to GGUF writes them.
pub fn gguf_of(tokenizer_json: &[u8]) -> GgufVocab {
    let json: serde_json::Value = serde_json::from_slice(tokenizer_json).unwrap();
    let mut entries: Vec<(u64, &str, i32)> = json["model"]["vocab"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(text, id)| (id.as_u64().unwrap(), text.as_str(), 1))
        .collect();
    let added = json["added_tokens"].as_array().unwrap();
    entries.retain(|(id, ..)| added.iter().all(|token| token["id"] != *id));
    entries.extend(
        added.iter().map(|token| (token["id"].as_u64().unwrap(), token["content"].as_str().unwrap(), 3)),
    );
    entries.sort_unstable();
    let merges = json["model"]["merges"].as_array().unwrap();
    GgufVocab {
        model: "gpt2".to_owned(),
        tokens: entries.iter().map(|(_, text, _)| (*text).to_owned()).collect(),
        token_types: entries.iter().map(|(.., kind)| *kind).collect(),
        merges: merges
            .iter()
            .map(|pair| format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
            .collect(),
        bos: added.first().map(|token| token["id"].as_u64().unwrap() as u32),
        ..GgufVocab::default()
    }
}

#[derive(Deserialize)]
struct Reference {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    messages: Option<Vec<Message>>,
    #[serde(alias = "prompt")]
    prompt_text: String,
    prompt_ids: Vec<u32>,
    greedy_ids: Vec<u32>,
    greedy_text: String,
}

#[derive(Deserialize)]
struct Config {
    chat_template: String,
    bos_token: String,
    eos_token: String,
}

/// The embedded model: prompts, ids and generated text as transformers has them.
pub fn bit_7m() {
    let tokenizer = from_json(BIT_7M_TOKENIZER).unwrap();
    let gguf = GgufVocab { pre: Some("llama-bpe".to_owned()), ..gguf_of(BIT_7M_TOKENIZER) };
    let from_gguf = from_gguf(gguf).unwrap();
    let config: Config = serde_json::from_str(BIT_7M_CONFIG).unwrap();
    let template = ChatTemplate::new(&config.chat_template).unwrap();
    let options = RenderOptions {
        add_generation_prompt: true,
        bos_token: Some(config.bos_token),
        eos_token: Some(config.eos_token),
        ..RenderOptions::default()
    };
    let reference: Reference = serde_json::from_str(BIT_7M_REFERENCE).unwrap();
    for case in reference.cases {
        // A raw prompt is encoded with the start-of-text token; a template writes it itself.
        let is_chat = case.messages.is_some();
        if let Some(messages) = &case.messages {
            assert_eq!(template.render(messages, &options).unwrap(), case.prompt_text);
            assert_eq!(tokenizer.encode_chat(&case.prompt_text).unwrap(), case.prompt_ids);
        }
        for tokenizer in [&tokenizer, &from_gguf] {
            assert_eq!(tokenizer.encode(&case.prompt_text, !is_chat).unwrap(), case.prompt_ids);
            assert_eq!(tokenizer.decode(&case.greedy_ids, true).unwrap(), case.greedy_text);
        }
        assert_eq!(tokenizer.decode(&case.prompt_ids, !is_chat).unwrap(), case.prompt_text);
    }
}

/// A byte-level vocabulary whose merges show where each pre-tokenizer cuts.
fn cut_vocabulary(pre: &str) -> GgufVocab {
    let mut tokens: Vec<String> = ByteLevel::alphabet().into_iter().map(String::from).collect();
    tokens.sort_unstable();
    let merges = ["1 2", "12 3", "123 4", "Ġ 1", "Ġ x", "Ġ Ġ", "! Ċ", "' S", "' s", "x !", "3 Ġ", "! 1"];
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    GgufVocab {
        model: "gpt2".to_owned(),
        pre: Some(pre.to_owned()),
        tokens,
        merges: merges.map(str::to_owned).to_vec(),
        ..GgufVocab::default()
    }
}

/// Each named pre-tokenizer cuts where its family's tokenizer.json does.
pub fn named_pre_tokenizers_cut_words() {
    let text = "x1234  x!\n 1'S\u{201c}1x's   12\u{65}\u{301}";
    let cases = [
        ("llama-bpe", "x 123 4 Ġ Ġx !Ċ Ġ 1 'S â Ģ ľ 1 x 's ĠĠ Ġ 12 e Ì ģ"),
        ("falcon_e", "x 123 4 Ġ Ġx !Ċ Ġ 1 'S â Ģ ľ 1 x 's ĠĠ Ġ 12 e Ì ģ"),
        ("qwen2", "x 1 2 3 4 Ġ Ġx !Ċ Ġ 1 'S â Ģ ľ 1 x 's ĠĠ Ġ 1 2 Ã ©"),
        ("smollm", "x 1 2 3 4 Ġ Ġx ! Ċ Ġ 1 ' S â Ģ ľ 1 x 's ĠĠ Ġ 1 2 e Ì ģ"),
        ("gpt-2", "x 1234 Ġ Ġx ! Ċ Ġ1 ' S â Ģ ľ 1 x 's ĠĠ Ġ 12 e Ì ģ"),
        ("olmo", "x 1234 Ġ Ġx ! Ċ Ġ1 ' S â Ģ ľ 1 x 's ĠĠ Ġ 12 Ã ©"),
        ("default", "x 123 4 Ġ Ġx ! Ċ Ġ 1 ' S â Ģ ľ 1 x ' s ĠĠ Ġ 12 e Ì ģ"),
    ];
    for (pre, expected) in cases {
        let tokenizer = from_gguf(cut_vocabulary(pre)).unwrap();
        let ids = tokenizer.encode(text, false).unwrap();
        let tokens: Vec<String> = ids.iter().map(|id| tokenizer.token_text(*id).unwrap()).collect();
        assert_eq!(tokens.join(" "), expected, "{pre}");
    }
}
