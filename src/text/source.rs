//! What a checkpoint carries about its tokenizer, before anything is built from it.

/// Where a tokenizer comes from.
#[derive(Debug, Clone)]
pub enum TokenizerSource {
    /// The bytes of a Hugging Face `tokenizer.json`.
    Json(Vec<u8>),
    /// The `tokenizer.ggml.*` metadata of a GGUF file.
    Gguf(Box<GgufVocab>),
}

/// `tokenizer.ggml.*`, field by field; `None` and empty where the file has no such key.
#[derive(Debug, Clone, Default)]
pub struct GgufVocab {
    /// `tokenizer.ggml.model`: `gpt2` (byte-level BPE) or `llama` (SentencePiece).
    pub model: String,
    /// `tokenizer.ggml.pre`: the pre-tokenizer's name.
    pub pre: Option<String>,
    pub tokens: Vec<String>,
    pub scores: Vec<f32>,
    /// 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub token_types: Vec<i32>,
    /// `"left right"` pairs, best first.
    pub merges: Vec<String>,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub unknown: Option<u32>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub add_space_prefix: Option<bool>,
}
