//! Tokenizers, detokenizer and chat templates, natively.

#[path = "suite/text.rs"]
mod suite;

use suite::tokenizer;

/// The Llama-3 vocabulary, which is fetched rather than committed (its licence is not ours).
fn llama_3_tokenizer() -> Option<Vec<u8>> {
    let Some(path) = std::env::var_os("STERNA_LLAMA3_TOKENIZER") else {
        eprintln!(
            "skipped: set STERNA_LLAMA3_TOKENIZER to the file that scripts/fetch-llama3-tokenizer.mjs writes"
        );
        return None;
    };
    Some(std::fs::read(path).expect("STERNA_LLAMA3_TOKENIZER names a readable file"))
}

#[test]
fn llama_3_from_json() {
    if let Some(json) = llama_3_tokenizer() {
        tokenizer::llama_3_from_json(&json);
    }
}

#[test]
fn llama_3_from_gguf() {
    if let Some(json) = llama_3_tokenizer() {
        tokenizer::llama_3_from_gguf(&json);
    }
}

#[test]
fn bit_7m() {
    tokenizer::bit_7m();
}
