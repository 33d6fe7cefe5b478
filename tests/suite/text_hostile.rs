//! Files and texts that are wrong: a typed error or the right result, never a panic.

use proptest::prelude::*;
use serde_json::{Value, json};
use sterna::text::{GgufVocab, MAX_TEXT_BYTES, Tokenizer};

use super::{from_gguf, from_json, runner, sentencepiece};

const BIT_7M: &[u8] = include_bytes!("../../models/bit-7m/tokenizer.json");

/// A small tokenizer.json with one of everything.
fn small_json() -> Value {
    json!({
        "version": "1.0",
        "added_tokens": [{"id": 9, "content": "<s>", "special": true}, {"id": 5, "content": "<tool>", "special": false}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated", "invert": false},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "unk_token": null, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
    })
}

/// Ids with gaps stay what the file says.
pub fn added_tokens_keep_their_ids() {
    let tokenizer = from_json(small_json().to_string()).unwrap();
    assert_eq!(tokenizer.encode("abba<tool>", true).unwrap(), [9, 2, 1, 0, 5]);
    assert_eq!(tokenizer.decode(&[9, 2, 5, 7], true).unwrap(), "ab<tool>");
    assert_eq!((tokenizer.vocab_size(), tokenizer.token_id("<s>")), (10, Some(9)));
    assert_eq!((tokenizer.token_text(2).as_deref(), tokenizer.token_text(7)), (Some("ab"), None));
    assert_eq!(tokenizer.check_vocab(9).unwrap_err().code(), "corrupt_file");
    tokenizer.check_vocab(10).unwrap();
    tokenizer.check_vocab(64).unwrap();
    let without_bos = tokenizer.with_bos(9, false).unwrap();
    assert_eq!(without_bos.encode("a", true).unwrap(), [0]);
    let with_bos = without_bos.with_bos(9, true).unwrap();
    assert_eq!(with_bos.encode("a", true).unwrap(), [9, 0]);
    assert_eq!(with_bos.with_bos(7, true).unwrap_err().code(), "corrupt_file");
}

/// An added token that the model knows under another id has the model's, as in the reference.
pub fn the_models_id_of_an_added_token_wins() {
    let mut file = small_json();
    file["model"]["vocab"]["<tool>"] = json!(7);
    let tokenizer = from_json(file.to_string()).unwrap();
    assert_eq!(tokenizer.encode("a<tool>", false).unwrap(), [0, 7]);
    assert_eq!(tokenizer.decode(&[0, 7], true).unwrap(), "a<tool>");
    file["added_tokens"][1]["special"] = json!(true);
    let tokenizer = from_json(file.to_string()).unwrap();
    assert_eq!(tokenizer.decode(&[0, 7], true).unwrap(), "a");
}

/// One wrong field at a time.
pub fn wrong_json_fields_are_errors() {
    let deep = (0..100).fold(json!([]), |inner, _| json!([inner]));
    let cases = [
        ("/model/type", json!("Unigram"), "unsupported_format"),
        ("/model", json!({"type": "Unigram", "vocab": [["a", 0.5]]}), "unsupported_format"),
        ("/model", json!({"type": "BPE"}), "corrupt_file"),
        ("/model", json!(null), "corrupt_file"),
        ("/model/vocab", json!({}), "corrupt_file"),
        ("/model/vocab", json!(["a"]), "corrupt_file"),
        ("/model/vocab", json!({"a": -1}), "corrupt_file"),
        ("/model/vocab", json!({"a": 4_294_967_295_u32, "b": 1, "ab": 2}), "corrupt_file"),
        ("/model/vocab", json!({"a": 1, "b": 1, "ab": 2}), "corrupt_file"),
        ("/model/merges", json!([["a", "x"]]), "corrupt_file"),
        ("/model/merges", json!([["b", "a"]]), "corrupt_file"),
        ("/model/merges", json!([["a"]]), "corrupt_file"),
        ("/model/merges", json!([["a", "b", "c"]]), "corrupt_file"),
        ("/model/merges", json!(["ab"]), "corrupt_file"),
        ("/model/merges", json!(["a b c"]), "corrupt_file"),
        ("/model/unk_token", json!("<missing>"), "corrupt_file"),
        ("/model/continuing_subword_prefix", json!("##"), "unsupported_format"),
        ("/model/end_of_word_suffix", json!("</w>"), "unsupported_format"),
        ("/model/dropout", json!(0.5), "unsupported_format"),
        ("/added_tokens/0/id", json!(0), "corrupt_file"),
        ("/added_tokens/0/id", json!(1_u64 << 40), "corrupt_file"),
        ("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "!"}), "unsupported_format"),
        ("/normalizer", json!({"type": "Replace", "pattern": {"Regex": "("}, "content": ""}), "corrupt_file"),
        (
            "/normalizer",
            json!({"type": "Replace", "pattern": {"String": ""}, "content": "x"}),
            "corrupt_file",
        ),
        (
            "/normalizer",
            json!({"type": "Sequence", "normalizers": [{"type": "Nonsense"}]}),
            "unsupported_format",
        ),
        ("/normalizer", json!({"type": "Prepend"}), "corrupt_file"),
        ("/normalizer", json!(3), "corrupt_file"),
        ("/pre_tokenizer", json!({"type": "BertPreTokenizer"}), "unsupported_format"),
        ("/pre_tokenizer/pattern", json!({"Regex": "(?<"}), "corrupt_file"),
        ("/pre_tokenizer", json!({"type": "Sequence"}), "corrupt_file"),
        ("/decoder", json!(null), "unsupported_format"),
        ("/decoder", json!({}), "corrupt_file"),
        ("/decoder", deep, "corrupt_file"),
        ("/decoder", json!({"type": "WordPiece", "prefix": "##", "cleanup": true}), "unsupported_format"),
        ("/decoder", json!({"type": "Strip", "content": " ", "start": 0, "stop": 9}), "unsupported_format"),
        (
            "/decoder",
            json!({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "", "start": 1, "stop": 0}]}),
            "corrupt_file",
        ),
        ("/post_processor/special_tokens", json!({}), "corrupt_file"),
        ("/post_processor/single", json!([{"Sequence": {"id": "B", "type_id": 0}}]), "corrupt_file"),
        ("/post_processor/single", json!([]), "corrupt_file"),
        ("/post_processor/special_tokens/<s>/ids", json!([77]), "corrupt_file"),
        ("/post_processor", json!({"type": "Nonsense"}), "unsupported_format"),
    ];
    for (path, value, code) in cases {
        let mut file = small_json();
        match file.pointer_mut(path) {
            Some(field) => *field = value.clone(),
            None => {
                let (parent, key) = path.rsplit_once('/').unwrap();
                file.pointer_mut(parent).unwrap()[key] = value.clone();
            }
        }
        let error = from_json(file.to_string()).expect_err(&format!("{path} = {value}"));
        assert_eq!(error.code(), code, "{path} = {value}: {error}");
    }
}

/// A download that broke off, or is something else.
pub fn truncated_json_is_corrupt() {
    let step = BIT_7M.len() / 40;
    for length in (0..BIT_7M.len() - 1).step_by(step) {
        assert_eq!(from_json(&BIT_7M[..length]).unwrap_err().code(), "corrupt_file", "{length}");
    }
    for other in ["", "null", "[]", "<!doctype html>", "version https://git-lfs.github.com/spec/v1", "\u{0}"]
    {
        assert_eq!(from_json(other).unwrap_err().code(), "corrupt_file", "{other}");
    }
    let nested = format!("{{\"decoder\": {}", "[".repeat(100_000));
    assert_eq!(from_json(nested).unwrap_err().code(), "corrupt_file");
}

/// Uses a tokenizer that a damaged file still gave.
fn use_it(result: sterna::Result<Tokenizer>) {
    let Ok(tokenizer) = result else { return };
    for text in ["Hello, wörld! 123 \n\n <s> a b ab <tool> 👍", "", " "] {
        let ids = tokenizer.encode(text, true).unwrap_or_default();
        tokenizer.decode(&ids, false).unwrap();
        tokenizer.decode(&ids, true).unwrap();
    }
}

/// The files that are damaged: a byte-level and a SentencePiece tokenizer.
fn intact_files() -> [Value; 2] {
    [small_json(), sentencepiece::small_json()]
}

/// Flipped bytes: whatever they make of the file, nothing panics, neither then nor when it is used.
pub fn damaged_json_never_panics() {
    let flips = prop::collection::vec((any::<prop::sample::Index>(), 0x20..0x7f_u8), 1..4);
    for file in intact_files() {
        let intact = file.to_string().into_bytes();
        let property = |flips: Vec<(prop::sample::Index, u8)>| {
            let mut bytes = intact.clone();
            for (at, byte) in flips {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            use_it(from_json(bytes));
            Ok(())
        };
        runner(1500).run(&flips, property).unwrap();
    }
}

/// Every value of the file, replaced by values of every kind.
pub fn replaced_json_values_never_panic() {
    let replacements = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!(" "),
        json!("▁é"),
        json!("(?=a)*"),
        json!([]),
        json!({}),
        json!([[1], {"type": "Sequence"}]),
        json!({"type": "ByteLevel"}),
    ];
    for file in intact_files() {
        let mut paths = vec![];
        collect_paths(&file, "", &mut paths);
        for path in paths {
            for replacement in &replacements {
                let mut damaged = file.clone();
                *damaged.pointer_mut(&path).unwrap() = replacement.clone();
                use_it(from_json(damaged.to_string()));
            }
        }
    }
}

fn collect_paths(value: &Value, path: &str, paths: &mut Vec<String>) {
    paths.push(path.to_owned());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            collect_paths(inner, &format!("{path}/{name}"), paths);
        }),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, inner)| collect_paths(inner, &format!("{path}/{at}"), paths));
        }
        _ => {}
    }
}

/// Metadata made of anything.
fn arbitrary_gguf() -> impl Strategy<Value = GgufVocab> {
    let token = prop_oneof!["[ab▁Ġ<>|]{0,3}", "<0x[0-9A-G]{2}>", any::<String>()];
    let kind = prop_oneof![9 => 1..7_i32, 1 => any::<i32>()];
    let merge = prop_oneof!["[ab] [ab]", "[ab▁Ġ ]{0,4}", any::<String>()];
    let model = prop::sample::select(vec!["gpt2", "llama"]);
    let pre = prop::sample::select(vec![None, Some("smollm"), Some("qwen2"), Some("default"), Some("olmo")]);
    let tokens = prop::collection::vec((token, -1.0..1.0_f32, kind), 0..12);
    let merges = prop::collection::vec(merge, 0..3);
    let special = prop::option::of(0..14_u32);
    (model, pre, tokens, merges, special, any::<Option<bool>>()).prop_map(
        |(model, pre, tokens, merges, special, flag)| GgufVocab {
            model: model.to_owned(),
            pre: pre.map(str::to_owned),
            scores: tokens.iter().map(|(_, score, _)| *score).collect(),
            token_types: tokens.iter().map(|(.., kind)| *kind).collect(),
            tokens: tokens.into_iter().map(|(text, ..)| text).collect(),
            merges,
            bos: special,
            eos: special,
            unknown: special,
            add_bos: flag,
            add_eos: flag,
            add_space_prefix: flag,
        },
    )
}

/// Any metadata gives an error or a tokenizer that works.
pub fn arbitrary_gguf_never_panics() {
    let property = |vocab: GgufVocab| {
        use_it(from_gguf(vocab));
        Ok(())
    };
    runner(500).run(&arbitrary_gguf(), property).unwrap();
}

fn small_gguf() -> GgufVocab {
    GgufVocab {
        model: "gpt2".to_owned(),
        pre: Some("llama-bpe".to_owned()),
        tokens: ["a", "b", "ab", "<|bos|>"].map(str::to_owned).to_vec(),
        token_types: vec![1, 1, 1, 3],
        merges: vec!["a b".to_owned()],
        bos: Some(3),
        ..GgufVocab::default()
    }
}

/// GGUF metadata that contradicts itself.
pub fn wrong_gguf_fields_are_errors() {
    type Change = fn(&mut GgufVocab);
    let cases: [(&str, Change, &str); 16] = [
        ("no tokens", |v| v.tokens.clear(), "corrupt_file"),
        ("no model", |v| v.model.clear(), "corrupt_file"),
        ("another model", |v| v.model = "bert".to_owned(), "unsupported_format"),
        ("an unknown pre-tokenizer", |v| v.pre = Some("tekken".to_owned()), "unsupported_format"),
        ("too few types", |v| v.token_types.truncate(1), "corrupt_file"),
        ("an unknown type", |v| v.token_types[0] = 9, "corrupt_file"),
        ("a byte that is none", |v| v.token_types[0] = 6, "corrupt_file"),
        ("a start token that is none", |v| v.bos = Some(4), "corrupt_file"),
        ("an end token that is none", |v| v.eos = Some(u32::MAX), "corrupt_file"),
        ("an unknown token that is none", |v| v.unknown = Some(4), "corrupt_file"),
        ("a merge of one", |v| v.merges.push("ab".to_owned()), "corrupt_file"),
        ("a merge with nothing", |v| v.merges.push("a ".to_owned()), "corrupt_file"),
        ("an empty merge", |v| v.merges.push(String::new()), "corrupt_file"),
        ("a merge of unknown tokens", |v| v.merges.push("x y".to_owned()), "corrupt_file"),
        ("a merge into an unknown token", |v| v.merges.push("b a".to_owned()), "corrupt_file"),
        ("a sentencepiece model without scores", |v| v.model = "llama".to_owned(), "corrupt_file"),
    ];
    for (name, change, code) in cases {
        let mut vocab = small_gguf();
        change(&mut vocab);
        let error = from_gguf(vocab).expect_err(name);
        assert_eq!(error.code(), code, "{name}: {error}");
    }
    let unknown =
        from_gguf(GgufVocab { pre: Some("tekken".to_owned()), ..small_gguf() }).unwrap_err().to_string();
    assert!(unknown.contains("tekken") && unknown.contains("llama-bpe"), "{unknown}");
    let huge = GgufVocab {
        model: "llama".to_owned(),
        tokens: vec!["a".repeat(5000)],
        scores: vec![0.0],
        ..GgufVocab::default()
    };
    assert_eq!(from_gguf(huge).unwrap_err().code(), "corrupt_file");
}

/// Metadata that is odd and has one sensible reading.
pub fn odd_gguf_fields_work() {
    let mut vocab = small_gguf();
    vocab.tokens.extend(["ab", "", "<|end|>"].map(str::to_owned));
    vocab.token_types.clear();
    let tokenizer = from_gguf(vocab).unwrap();
    // The first of two equal tokens is what text becomes; both read the same.
    assert_eq!(tokenizer.encode("ab<|end|>", true).unwrap(), [3, 2, 6]);
    assert_eq!(tokenizer.decode(&[2, 4, 5], true).unwrap(), "abab");
    assert!(tokenizer.is_special(3) && tokenizer.is_special(6));
    // The end of a turn is a control token even where the file calls it text.
    let mut vocab = small_gguf();
    vocab.tokens.push("<|im_end|>".to_owned());
    vocab.token_types.push(1);
    let tokenizer = from_gguf(vocab).unwrap();
    assert_eq!(tokenizer.encode("a<|im_end|>", false).unwrap(), [0, 4]);
    assert_eq!(tokenizer.decode(&[0, 4], true).unwrap(), "a");
    let scores = vec![f32::NAN, f32::INFINITY, 0.0, -0.0];
    let nan = GgufVocab { model: "llama".to_owned(), scores, ..small_gguf() };
    assert_eq!(from_gguf(nan).unwrap().decode(&[2], true).unwrap(), "ab");
}

/// Texts at the edge of what is encoded.
pub fn extreme_texts() {
    let tokenizer = from_json(BIT_7M).unwrap();
    let too_long = "a".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(tokenizer.encode(&too_long, true).unwrap_err().code(), "invalid_argument");
    let spaces = " ".repeat(1_000_000);
    assert_eq!(tokenizer.encode(&spaces, true).unwrap_err().code(), "invalid_argument");
    for text in [
        "a".repeat(300_000),
        " ".repeat(200_000) + "x",
        "é\u{301}".repeat(50_000),
        "\0\u{85}\u{2028}".repeat(10_000),
    ] {
        let ids = tokenizer.encode(&text, false).unwrap();
        assert!(!ids.is_empty());
    }
    // A long run of white space is cut like a short one: all but the last space, then the word.
    let long = tokenizer.encode(&(" ".repeat(200_000) + "the"), false).unwrap();
    let run = tokenizer.encode(&" ".repeat(199_999), false).unwrap();
    let word = tokenizer.encode(" the", false).unwrap();
    assert_eq!(long, [run, word].concat());
}
