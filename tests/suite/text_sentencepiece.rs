//! SentencePiece vocabularies: the merges against SentencePiece's own rule, written out directly.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sterna::text::{Detokenizer, GgufVocab, Tokenizer};
use tokenizers::Tokenizer as Reference;

use super::{from_gguf, from_json, runner};

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// Pieces from best to worst score, as training finds them.
const PIECES: &str = "▁t he ▁a in ▁the ▁▁ is nd ▁s ▁and er ▁in on ▁o re ▁▁▁▁ es ▁is at ss ing ▁th ee en \
    ▁he ▁▁▁▁▁▁▁▁ ▁on ▁an ess the ha nt ▁not est ▁e ▁t e t a o i n s h r d g ▁ é 日 , . <";

/// The control tokens, the bytes, a user-defined token and [`PIECES`].
pub fn vocabulary() -> GgufVocab {
    let mut vocab = GgufVocab {
        model: "llama".to_owned(),
        bos: Some(1),
        eos: Some(2),
        unknown: Some(0),
        ..GgufVocab::default()
    };
    let mut add = |text: String, score: f32, kind: i32| {
        vocab.tokens.push(text);
        vocab.scores.push(score);
        vocab.token_types.push(kind);
    };
    add("<unk>".to_owned(), 0.0, UNKNOWN);
    add("<s>".to_owned(), 0.0, CONTROL);
    add("</s>".to_owned(), 0.0, CONTROL);
    for byte in 0..=255_u8 {
        add(format!("<0x{byte:02X}>"), 0.0, BYTE);
    }
    let mut seen = std::collections::HashSet::new();
    for (rank, piece) in PIECES.split_whitespace().filter(|piece| seen.insert(*piece)).enumerate() {
        add(piece.to_owned(), -(rank as f32), NORMAL);
    }
    add("<tool call>".to_owned(), 0.0, USER_DEFINED);
    vocab
}

/// SentencePiece's rule: while there is a pair of neighbours whose union is a piece, join the one with
/// the best score, the leftmost of equals; what is then no piece is spelled in bytes.
fn sentencepiece(vocab: &GgufVocab, text: &str) -> Vec<u32> {
    let pieces: HashMap<&str, u32> = (0..)
        .zip(&vocab.tokens)
        .filter(|(id, _)| vocab.token_types[*id as usize] == NORMAL)
        .map(|(id, piece)| (piece.as_str(), id))
        .collect();
    let spelled = if text.is_empty() { String::new() } else { format!("▁{}", text.replace(' ', "▁")) };
    let mut symbols: Vec<String> = spelled.chars().map(String::from).collect();
    loop {
        let mut best: Option<(f32, usize)> = None;
        for at in 1..symbols.len() {
            let Some(id) = pieces.get(format!("{}{}", symbols[at - 1], symbols[at]).as_str()) else {
                continue;
            };
            let score = vocab.scores[*id as usize];
            if best.is_none_or(|(best, _)| score > best) {
                best = Some((score, at));
            }
        }
        let Some((_, at)) = best else { break };
        let right = symbols.remove(at);
        symbols[at - 1].push_str(&right);
    }
    let ids = |symbol: &String| match pieces.get(symbol.as_str()) {
        Some(id) => vec![*id],
        // Bytes follow the three control tokens.
        None => symbol.bytes().map(|byte| 3 + u32::from(byte)).collect(),
    };
    symbols.iter().flat_map(ids).collect()
}

fn text() -> impl Strategy<Value = String> {
    let letters = prop::sample::select("   thaeinsord,.g<é日".chars().collect::<Vec<_>>());
    prop_oneof![
        4 => prop::collection::vec(letters, 0..60).prop_map(String::from_iter),
        1 => "\\PC{0,20}",
    ]
    .prop_filter("special tokens are matched before pieces", |text| {
        !text.contains("<s>") && !text.contains("</s>")
    })
}

/// The tokenizer gives the ids of the rule, and its text back.
pub fn merges_follow_the_scores() {
    let vocab = vocabulary();
    let tokenizer = from_gguf(vocab.clone()).unwrap();
    for text in ["the sand is not in the hand", "  on  and on ", "", " ", "<unrelated>", "sésame 日本\n"] {
        assert_eq!(tokenizer.encode(text, false).unwrap(), sentencepiece(&vocab, text), "{text:?}");
    }
    let property = |text: String| {
        let ids = tokenizer.encode(&text, false).unwrap();
        prop_assert_eq!(&ids, &sentencepiece(&vocab, &text));
        prop_assert_eq!(tokenizer.decode(&ids, true).unwrap(), text);
        Ok(())
    };
    runner(1000).run(&text(), property).unwrap();
}

/// Control and user-defined tokens are matched in text; a raw text begins with the start token.
pub fn special_tokens_are_matched() {
    let vocab = vocabulary();
    let tool_call = vocab.tokens.len() as u32 - 1;
    let tokenizer = from_gguf(vocab.clone()).unwrap();
    let the = tokenizer.token_id("▁the").unwrap();
    assert_eq!(tokenizer.encode("the", true).unwrap(), [1, the]);
    // As llama.cpp and transformers' Llama tokenizer: text after a special token starts a word.
    assert_eq!(tokenizer.encode("the</s>the<tool call>", false).unwrap(), [the, 2, the, tool_call]);
    assert_eq!(tokenizer.decode(&[1, the, the, tool_call, 2], true).unwrap(), "the the<tool call>");
    assert_eq!(tokenizer.decode(&[1, the, the, 2], false).unwrap(), "<s> the the</s>");
    assert!(tokenizer.is_special(2) && !tokenizer.is_special(tool_call));
    let without =
        from_gguf(GgufVocab { add_bos: Some(false), add_space_prefix: Some(false), ..vocab }).unwrap();
    let bare = without.encode("the", true).unwrap();
    assert_eq!(bare, [without.token_id("the").unwrap()]);
    assert_eq!(without.decode(&[the], true).unwrap(), " the");
}

/// A continuation keeps the space that starts it; a text of its own does not have one.
pub fn leading_space_depends_on_what_came_before() {
    let tokenizer = from_gguf(vocabulary()).unwrap();
    let ids = tokenizer.encode("the sand", false).unwrap();
    let stream = |mut detokenizer: Detokenizer| -> String {
        let text: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
        text + &detokenizer.finish()
    };
    assert_eq!(stream(Detokenizer::new(&tokenizer)), "the sand");
    assert_eq!(stream(Detokenizer::continuing(&tokenizer)), " the sand");
}

/// The same vocabulary as the tokenizer.json that transformers converts it to, with this decoder.
fn as_json(vocab: &GgufVocab, decoder: &Value) -> String {
    let pieces: Vec<(usize, &String)> =
        vocab.tokens.iter().enumerate().filter(|(id, _)| vocab.token_types[*id] == NORMAL).collect();
    let ids: HashMap<&str, usize> = pieces.iter().map(|(id, piece)| (piece.as_str(), *id)).collect();
    let mut merges = vec![];
    for (_, piece) in &pieces {
        let cuts = piece.char_indices().skip(1).map(|(at, _)| piece.split_at(at));
        let mut cuts: Vec<_> = cuts.filter(|(a, b)| ids.contains_key(a) && ids.contains_key(b)).collect();
        cuts.sort_by_key(|(a, b)| (ids[a], ids[b]));
        merges.extend(cuts);
    }
    let added: Vec<_> = [0, 1, 2]
        .iter()
        .map(|id| {
            json!({"id": id, "content": vocab.tokens[*id], "special": true, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": false})
        })
        .collect();
    let entries: serde_json::Map<_, _> =
        vocab.tokens.iter().enumerate().map(|(id, text)| (text.clone(), id.into())).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "pre_tokenizer": null, "post_processor": null,
        "decoder": decoder,
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
            "vocab": entries, "merges": merges},
    })
    .to_string()
}

/// A SentencePiece tokenizer.json with one of everything and few tokens.
pub fn small_json() -> Value {
    let mut vocab = vocabulary();
    let kept = |id: usize| !(5..=250).contains(&id);
    let mut id = 0;
    vocab.tokens.retain(|_| {
        id += 1;
        kept(id - 1)
    });
    vocab.token_types =
        [vec![UNKNOWN, CONTROL, CONTROL], vec![BYTE; 10], vec![NORMAL; vocab.tokens.len() - 13]].concat();
    let decoder = json!({"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]});
    serde_json::from_str(&as_json(&vocab, &decoder)).unwrap()
}

/// A converted vocabulary encodes and decodes as the reference implementation does, with each of the
/// decoders that converters write.
pub fn converted_vocabulary_agrees_with_the_reference() {
    let replace = json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "});
    let strip = json!({"type": "Strip", "content": " ", "start": 1, "stop": 0});
    let bytes = json!({"type": "ByteFallback"});
    let fuse = json!({"type": "Fuse"});
    let metaspace =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false});
    let never = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": false});
    for decoder in [
        json!({"type": "Sequence", "decoders": [replace, bytes, fuse, strip]}),
        json!({"type": "Sequence", "decoders": [replace, bytes, fuse]}),
        json!({"type": "Sequence", "decoders": [bytes, metaspace]}),
        metaspace,
        never,
    ] {
        agrees_with_the_reference(as_json(&vocabulary(), &decoder).as_bytes());
    }
}

fn agrees_with_the_reference(json: &[u8]) {
    let tokenizer: Tokenizer = from_json(json).unwrap();
    let reference = Reference::from_bytes(json).unwrap();
    let property = |text: String| {
        let ids = tokenizer.encode(&text, false).unwrap();
        let expected = reference.encode(text.as_str(), false).unwrap();
        prop_assert_eq!(&ids, expected.get_ids());
        let ids = [&[1], ids.as_slice(), &[2]].concat();
        for skip_special in [true, false] {
            let decoded = tokenizer.decode(&ids, skip_special).unwrap();
            prop_assert_eq!(decoded, reference.decode(&ids, skip_special).unwrap());
        }
        Ok(())
    };
    runner(200).run(&text(), property).unwrap();
}
