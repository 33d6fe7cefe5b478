//! What a checkpoint's metadata says about its model, in one form for GGUF and Hugging Face configs.

use crate::Result;
use crate::error::{corrupt, unsupported};
use crate::model::{ModelConfig, Role, RopeScaling};

use super::names::{is_layer_linear, is_matrix};

/// The configuration of a model and how its tensors are to be read.
#[derive(Debug, Clone)]
pub(super) struct ModelSpec {
    pub config: ModelConfig,
    pub tied: Tied,
    pub quantization: Quantization,
    /// Query and key rows are in the order of interleaved rotary pairs (GGUF `llama`).
    pub interleaved_rope: bool,
    /// Embedding and head may hold ternary values too (Qwen3 of Ternary-Bonsai).
    pub ternary_vocabulary: bool,
}

/// Whether the head is the embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tied {
    Yes,
    No,
    /// Only if the checkpoint has no head.
    IfAbsent,
}

/// How linears are quantised, beyond what the types of their tensors say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Quantization {
    /// Types say everything.
    None,
    /// `bitnet` of Hugging Face, packed: a stored scale multiplies or divides.
    Packed { divides: bool, skipped: SkippedModules },
    /// Float master weights that are quantised while loading.
    Master { skipped: SkippedModules },
    /// Groups of MLX at 2 bits.
    Mlx { group: usize },
}

/// `modules_to_not_convert`: `None` leaves out the output head only.
pub(super) type SkippedModules = Option<Vec<String>>;

impl Quantization {
    /// Whether the linear `role`, whose tensor is called `name`, is quantised by this scheme.
    pub fn covers(&self, role: Role, name: &str) -> bool {
        let skipped = match self {
            Quantization::None => return false,
            Quantization::Mlx { .. } => return is_matrix(role),
            Quantization::Packed { skipped, .. } | Quantization::Master { skipped } => skipped,
        };
        let module = name.strip_suffix(".weight_scale").or(name.strip_suffix(".weight")).unwrap_or(name);
        match skipped {
            None => is_layer_linear(role),
            Some(names) => {
                let named = |skipped: &String| module.starts_with(skipped) || module.ends_with(skipped);
                (is_layer_linear(role) || role == Role::Head) && !names.iter().any(named)
            }
        }
    }
}

/// The families that run, for messages.
pub(super) const SUPPORTED: &str = "Sterna runs bitnet, bitnet-b1.58, bitnet-25, llama and qwen3 (GGUF), and \
     BitNetForCausalLM, BitnetForCausalLM, LlamaForCausalLM and Qwen3ForCausalLM (safetensors)";

/// The error for an architecture that does not run.
pub(super) fn unsupported_architecture(name: &str) -> crate::Error {
    unsupported!("the architecture {name:?} is not supported. {SUPPORTED}")
}

/// A count from a file as a `usize` in `1..=most`.
pub(super) fn dimension(what: &str, value: u64, most: usize) -> Result<usize> {
    match usize::try_from(value) {
        Ok(value) if (1..=most).contains(&value) => Ok(value),
        _ => Err(corrupt!("{what} is {value}, outside 1..={most}: the config is damaged or not a model's")),
    }
}

pub(super) const MAX_VOCAB: usize = 1 << 22;
pub(super) const MAX_WIDTH: usize = 1 << 18;
pub(super) const MAX_LAYERS: usize = 1 << 10;
pub(super) const MAX_HEADS: usize = 1 << 10;
pub(super) const MAX_HEAD_DIM: usize = 1 << 11;
pub(super) const MAX_CONTEXT: usize = 1 << 30;

/// Checks what the fields of a config say about each other.
///
/// # Errors
/// `corrupt_file` naming the field that cannot be.
pub(super) fn check(config: &ModelConfig) -> Result<()> {
    if !config.num_heads.is_multiple_of(config.num_kv_heads) {
        return Err(corrupt!(
            "{} attention heads cannot share {} key/value heads: the config is damaged",
            config.num_heads,
            config.num_kv_heads
        ));
    }
    if !config.head_dim.is_multiple_of(2) {
        return Err(corrupt!("the head dimension {} is odd: the config is damaged", config.head_dim));
    }
    if config.query_width() > MAX_WIDTH {
        return Err(corrupt!(
            "{} heads of {} are wider than {MAX_WIDTH}: the config is damaged",
            config.num_heads,
            config.head_dim
        ));
    }
    let positive = |what: &str, value: f32| match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err(corrupt!("{what} is {value}: the config is damaged")),
    };
    positive("the norms' epsilon", config.norm_eps)?;
    positive("the rope base", config.rope.theta)?;
    match &config.rope.scaling {
        RopeScaling::None | RopeScaling::Factors { .. } => Ok(()),
        RopeScaling::Linear { factor } => positive("the rope scaling factor", *factor),
        RopeScaling::Yarn { factor, beta_fast, beta_slow, attention_factor, .. } => {
            positive("the rope scaling factor", *factor)?;
            positive("the rope scaling's beta_fast", *beta_fast)?;
            positive("the rope scaling's beta_slow", *beta_slow)?;
            positive("the rope scaling's attention factor", attention_factor.unwrap_or(1.0))
        }
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, .. } => {
            positive("the rope scaling factor", *factor)?;
            positive("the rope scaling's low_freq_factor", *low_freq_factor)?;
            positive("the rope scaling's high_freq_factor", *high_freq_factor - *low_freq_factor)
        }
    }
}
