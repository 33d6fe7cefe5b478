//! Text ↔ token ids, and messages → text. Pure: no model, no device, no I/O.
//!
//! A checkpoint describes its tokenizer in one of two ways ([`TokenizerSource`]); `json` and `gguf`
//! turn either into the same `Blueprint`, from which [`Tokenizer`] is built, so that nothing behind this
//! module knows where a vocabulary came from.

mod blueprint;
mod builtin_template;
mod byte_alphabet;
mod detokenizer;
mod gguf;
mod json;
mod message;
mod pre_tokenizer;
mod python;
mod sentencepiece;
pub mod source;
mod template;
mod template_depth;
mod token_table;
mod tokenizer;

pub use builtin_template::resolve_template;
pub use detokenizer::Detokenizer;
pub use message::Message;
pub use source::{GgufVocab, TokenizerSource};
pub use template::{ChatTemplate, RenderOptions};
pub use tokenizer::{MAX_TEXT_BYTES, Tokenizer};
