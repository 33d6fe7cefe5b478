//! The tests of `sterna::text` as plain functions over bytes, so that the native runner and the one in
//! a browser call the same bodies.

#[path = "text_tokenizer.rs"]
pub mod tokenizer;
