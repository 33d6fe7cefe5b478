//! The tests of `sterna::text` as plain functions over bytes, so that the native runner and the one in
//! a browser call the same bodies.

#[path = "text_detokenizer.rs"]
pub mod detokenizer;
#[path = "text_hostile.rs"]
pub mod hostile;
#[path = "text_sentencepiece.rs"]
pub mod sentencepiece;
#[path = "text_template.rs"]
pub mod template;
#[path = "text_tokenizer.rs"]
pub mod tokenizer;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sterna::Result;
use sterna::text::{GgufVocab, Tokenizer, TokenizerSource};

/// The tokenizer of GGUF metadata.
pub fn from_gguf(vocab: GgufVocab) -> Result<Tokenizer> {
    Tokenizer::from_source(&TokenizerSource::Gguf(Box::new(vocab)))
}

/// The tokenizer of a tokenizer.json.
pub fn from_json(bytes: impl Into<Vec<u8>>) -> Result<Tokenizer> {
    Tokenizer::from_source(&TokenizerSource::Json(bytes.into()))
}

/// A runner whose cases are the same in every run and that needs neither files nor entropy.
pub fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}
