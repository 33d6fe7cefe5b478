//! Streaming: what comes out token by token is what decoding everything gives, and is always whole.

use proptest::prelude::*;
use sterna::text::{Detokenizer, GgufVocab, Tokenizer};
use tokenizers::Tokenizer as Reference;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::{from_gguf, from_json, runner, sentencepiece};

const BIT_7M: &[u8] = include_bytes!("../../models/bit-7m/tokenizer.json");

/// A byte-level vocabulary without merges: every byte is a token, so every character is split.
fn bytes_only() -> Tokenizer {
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    let mut tokens: Vec<String> = alphabet.into_iter().map(String::from).collect();
    tokens.push("<|end|>".to_owned());
    let token_types = (0..=256).map(|id| if id == 256 { 3 } else { 1 }).collect();
    let vocab = GgufVocab {
        model: "gpt2".to_owned(),
        pre: Some("gpt-2".to_owned()),
        tokens,
        token_types,
        ..GgufVocab::default()
    };
    from_gguf(vocab).unwrap()
}

fn unicode() -> impl Strategy<Value = String> {
    let hard = prop::sample::select(vec![
        "👩‍👩‍👧‍👦",
        "🇯🇵",
        "❤️",
        "👍🏽",
        "日本語",
        "한국어",
        "e\u{301}",
        "é",
        "ß",
        "\u{10ffff}",
        "\u{fffd}",
        "नमस्ते",
        " ",
        "\n",
        "a",
    ]);
    prop_oneof![prop::collection::vec(hard, 0..12).prop_map(|parts| parts.concat()), any::<String>()]
        .prop_filter("special tokens leave no text", |text| !text.contains("s>"))
}

fn stream(tokenizer: &Tokenizer, ids: &[u32]) -> (Vec<String>, String) {
    let mut detokenizer = Detokenizer::new(tokenizer);
    let deltas = ids.iter().map(|id| detokenizer.push(*id)).collect();
    (deltas, detokenizer.finish())
}

/// Text survives tokens and streaming, and no piece of it holds a part of a character.
pub fn streaming_equals_decoding() {
    let tokenizers = [bytes_only(), from_gguf(sentencepiece::vocabulary()).unwrap()];
    for tokenizer in &tokenizers {
        let property = |text: String| {
            let ids = tokenizer.encode(&text, false).unwrap();
            let (deltas, rest) = stream(tokenizer, &ids);
            prop_assert_eq!(&rest, "");
            prop_assert_eq!(deltas.concat(), tokenizer.decode(&ids, true).unwrap());
            prop_assert_eq!(deltas.concat(), text.clone());
            // Every piece ends where a character of the text ends.
            let mut end = 0;
            for delta in deltas {
                end += delta.len();
                prop_assert!(text.is_char_boundary(end));
            }
            Ok(())
        };
        runner(500).run(&unicode(), property).unwrap();
    }
}

/// Any ids at all, invalid bytes included: streaming is decoding, and decoding is what
/// the reference implementation does.
pub fn any_ids_decode_as_in_the_reference() {
    let tokenizer = from_json(BIT_7M).unwrap();
    let reference = Reference::from_bytes(BIT_7M).unwrap();
    let ids = prop::collection::vec(prop_oneof![0..600_u32, 0..4096_u32], 0..60);
    let property = |ids: Vec<u32>| {
        let whole = tokenizer.decode(&ids, true).unwrap();
        prop_assert_eq!(&whole, &reference.decode(&ids, true).unwrap());
        prop_assert_eq!(tokenizer.decode(&ids, false).unwrap(), reference.decode(&ids, false).unwrap());
        let (deltas, rest) = stream(&tokenizer, &ids);
        prop_assert_eq!(deltas.concat() + &rest, whole);
        Ok(())
    };
    runner(1000).run(&ids, property).unwrap();
}

/// A character arrives with its last byte; an unfinished one at the end is marked, once.
pub fn characters_arrive_whole() {
    let tokenizer = bytes_only();
    let ids = tokenizer.encode("a👍", false).unwrap();
    assert_eq!(ids.len(), 5);
    let (deltas, rest) = stream(&tokenizer, &ids);
    assert_eq!(
        (deltas, rest.as_str()),
        (vec!["a".into(), String::new(), String::new(), String::new(), "👍".into()], "")
    );
    let (deltas, rest) = stream(&tokenizer, &ids[..4]);
    assert_eq!((deltas.concat().as_str(), rest.as_str()), ("a", "\u{fffd}"));
    // A special token between the bytes of a character neither shows nor breaks it.
    let (deltas, _) = stream(&tokenizer, &[ids[1], ids[2], 256, ids[3], ids[4], u32::MAX]);
    assert_eq!(deltas.concat(), "👍");
    assert_eq!(tokenizer.decode(&[256], false).unwrap(), "<|end|>");
    assert_eq!(tokenizer.decode(&[257], false).unwrap_err().code(), "invalid_argument");
}

/// A long generation costs no more for each token than a short one.
pub fn long_streams_stay_fast() {
    let tokenizer = bytes_only();
    let ids = tokenizer.encode(&"日本 ".repeat(100_000), false).unwrap();
    let (deltas, _) = stream(&tokenizer, &ids);
    assert_eq!(deltas.iter().map(String::len).sum::<usize>(), 700_000);
}
