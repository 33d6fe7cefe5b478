//! Files → named tensors, a [`ModelConfig`] and a tokenizer. Pure and push-driven: the caller brings
//! bytes in whatever pieces the network or the disk gives, and takes finished tensors out.

mod assembly;
mod entry;
mod gguf;
mod gguf_config;
mod headers;
mod hf_config;
mod inspect;
mod metadata;
mod names;
mod parts;
mod plan;
mod reader;
mod safetensors;
mod side_files;
mod sink;
mod sniff;
mod spec;
mod special;
mod split;
mod ternary_sinks;
mod walk;

pub use crate::quant::I2sLayout;
pub use inspect::{EncodingSummary, Format, InspectReport, TensorSummary};
pub use reader::{AUTO_Q8_BYTES, ActivationChoice, CheckpointReader, EmbeddingFormat, ReadOptions};

use crate::model::{ModelConfig, Role, Tensor};
use crate::quant::Matrix;
use crate::text::TokenizerSource;
use serde::Serialize;

/// A finished tensor, ready for a backend.
pub struct LoadedTensor {
    pub role: Role,
    pub value: Tensor<Matrix, Vec<f32>>,
    /// Whether this is only the next rows of its matrix, and others follow ([`ReadOptions::part_bytes`]).
    pub more_rows: bool,
}

/// Everything in a checkpoint besides its tensors.
pub struct Checkpoint {
    pub config: ModelConfig,
    /// `None` for a checkpoint without tokenizer files: it still runs on token ids.
    pub tokenizer: Option<TokenizerSource>,
    pub template: TemplateSource,
    pub special: SpecialTokens,
    pub defaults: GenerationDefaults,
}

/// Where the chat template may come from, most trusted first.
#[derive(Debug, Clone, Default)]
pub struct TemplateSource {
    /// `chat_template.jinja`, else `chat_template` of tokenizer_config.json, else
    /// `tokenizer.chat_template` of GGUF.
    pub jinja: Option<String>,
    /// Text of the `bos_token` and `eos_token` as tokenizer_config.json spells them.
    pub bos_token: Option<String>,
    pub eos_token: Option<String>,
}

/// Token ids with a meaning.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecialTokens {
    pub bos: Option<u32>,
    /// Any of these ends a generation.
    pub eos: Vec<u32>,
    /// Whether encoding raw text starts with `bos`; `None` leaves it to the tokenizer.
    pub add_bos: Option<bool>,
}

/// Sampling options that generation_config.json recommends.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationDefaults {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub max_new_tokens: Option<u32>,
}
