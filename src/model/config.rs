//! What a checkpoint says about its model. A model family is data here, never a copy of the forward
//! pass: a new family that differs in a norm, an activation or a rope scaling is a new value.

use serde::Serialize;

/// Shape and options of one decoder-only transformer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelConfig {
    /// The name the file gives its architecture: `bitnet-b1.58`, `llama`, `Qwen3ForCausalLM` …
    pub architecture: String,
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_layers: usize,
    pub num_heads: usize,
    pub num_kv_heads: usize,
    /// Width of one attention head; need not be `hidden_size / num_heads`.
    pub head_dim: usize,
    /// Longest context the model was made for, in tokens.
    pub max_context: usize,
    pub norm_eps: f32,
    pub activation: Activation,
    pub rope: Rope,
    /// RMSNorm before the output projection of attention and before the down projection (BitNet).
    pub sub_norms: bool,
    /// RMSNorm of each query and key head before RoPE (Qwen3).
    pub qk_norm: bool,
    /// What ternary linears multiply.
    pub linear_input: LinearInput,
}

/// The activation between gate/up and down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// `max(x, 0)²`
    Relu2,
    /// `x · sigmoid(x)`
    Silu,
}

/// What a ternary linear multiplies its weights with. Dense linears always take floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinearInput {
    /// Per-token absmax int8, as W1.58A8 models were trained (BitNet, BitLinear).
    Int8,
    /// Floats, as weight-only ternary models were trained (TriLM, Ternary-Bonsai).
    Float,
}

/// Rotary position embedding of the half-split kind: pair `(i, i + dim/2)` turns by
/// `position · inverse_frequency(i)`. Files with interleaved pairs have their rows permuted at load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rope {
    pub theta: f32,
    pub scaling: RopeScaling,
}

/// How the frequencies of [`Rope`] are stretched beyond the length the model was trained on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "type")]
pub enum RopeScaling {
    None,
    /// All frequencies divided by `factor`.
    Linear {
        factor: f32,
    },
    /// Static YaRN (<https://arxiv.org/abs/2309.00071>); `attention_factor` multiplies sine and cosine,
    /// `None` meaning `1 + 0.1 ln factor`.
    Yarn {
        factor: f32,
        original_context: usize,
        beta_fast: f32,
        beta_slow: f32,
        attention_factor: Option<f32>,
    },
    /// Llama 3.1's smooth interpolation.
    Llama3 {
        factor: f32,
        low_freq_factor: f32,
        high_freq_factor: f32,
        original_context: usize,
    },
    /// A divisor for each frequency (`rope_freqs.weight` of GGUF).
    Factors {
        factors: Vec<f32>,
    },
}

impl ModelConfig {
    /// Width of the concatenated query heads.
    pub fn query_width(&self) -> usize {
        self.num_heads * self.head_dim
    }

    /// Width of the concatenated key (or value) heads.
    pub fn kv_width(&self) -> usize {
        self.num_kv_heads * self.head_dim
    }
}
