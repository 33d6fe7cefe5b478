//! Text ↔ token ids. Pure: no model, no device, no I/O.

pub mod source;

pub use source::{GgufVocab, TokenizerSource};
