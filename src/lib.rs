//! Sterna runs ternary language models (BitNet b1.58 and its relatives) inside a web page.
//!
//! The crate is a pipeline of small modules; `docs/ARCHITECTURE.md` walks through them in the order
//! in which bytes become text.
//!
//! | module | job | must not know |
//! |---|---|---|
//! | [`checkpoint`] | files → named tensors and a [`model::ModelConfig`] | devices, JavaScript |
//! | [`quant`] | weight encodings → [`quant::Matrix`] | files, devices |
//! | [`model`] | the forward pass, written once over [`backend::Backend`] | devices, files |
//! | [`backend`] | the verbs of the forward pass on a device | files, JavaScript |
//! | [`text`] | text ↔ token ids, chat templates | models, devices |
//! | [`generate`] | sampling, stopping, streaming | devices, JavaScript |
//! | [`engine`] | all of the above as one loaded model | JavaScript |
//! | `web` | everything that touches JavaScript (wasm32 only) | |

pub mod backend;
pub mod checkpoint;
pub mod engine;
pub mod error;
mod float;
pub mod generate;
pub mod model;
pub mod quant;
pub mod text;
#[cfg(target_arch = "wasm32")]
pub mod web;

pub use error::{Error, Result};
