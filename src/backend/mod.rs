//! Devices behind one trait. A verb of [`Backend`] is one fused step of the forward pass, the unit at
//! which kernels are written and compared; [`crate::model::Transformer`] is written over these verbs
//! and knows no device.
//!
//! Invariant: the integer part of a ternary product is exact, so every backend gives the same sums;
//! only float reductions may differ.

pub mod cpu;

use crate::Result;
use crate::model::{Activation, LinearInput};
use crate::quant::Matrix;

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvFormat {
    F32,
    #[default]
    F16,
    /// Bytes, with a scale for each head's vector.
    Q8,
}

impl KvFormat {
    /// Bytes of one head's key or value.
    pub fn vector_bytes(self, head_dim: usize) -> usize {
        match self {
            KvFormat::F32 => 4 * head_dim,
            KvFormat::F16 => 2 * head_dim,
            KvFormat::Q8 => head_dim + size_of::<f32>(),
        }
    }
}

/// The shape of a KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    pub layers: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub format: KvFormat,
}

impl CacheShape {
    /// Bytes of the keys and values of `tokens` positions.
    pub fn bytes(&self, tokens: usize) -> usize {
        2 * self.layers * self.kv_heads * self.format.vector_bytes(self.head_dim) * tokens
    }
}

/// Keys and values of the tokens seen so far. Rewinding is cheap; appending is [`Backend::attend`]'s
/// business.
pub trait KvCache {
    /// Positions held.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets every position from `len` on.
    fn truncate(&mut self, len: usize);
}

/// What the attention of one layer needs besides its input.
pub struct AttentionInput<'a, B: Backend + ?Sized> {
    pub layer: usize,
    /// `[tokens, heads · head_dim]`
    pub query: B::Tensor,
    /// `[tokens, kv_heads · head_dim]`
    pub key: B::Tensor,
    /// `[tokens, kv_heads · head_dim]`
    pub value: B::Tensor,
    pub query_norm: Option<&'a B::Vector>,
    pub key_norm: Option<&'a B::Vector>,
    pub norm_eps: f32,
}

/// Sine and cosine of RoPE for a run of positions, `[tokens, head_dim / 2]` each.
#[derive(Debug, Clone)]
pub struct RopeAngles {
    pub cos: Vec<f32>,
    pub sin: Vec<f32>,
}

/// A device that can run the forward pass. Activations are `[tokens, width]`; a decode step is the
/// case `tokens == 1`.
pub trait Backend {
    /// A weight matrix on the device.
    type Matrix;
    /// A weight vector (norms) on the device.
    type Vector;
    /// `f32` activations `[tokens, width]`.
    type Tensor;
    /// A tensor prepared as the input of linears: normalised and, where the model asks for it,
    /// quantised to int8. One preparation serves all linears that share the input.
    type Input;
    type Cache: KvCache;

    fn upload_matrix(&self, matrix: Matrix) -> Result<Self::Matrix>;
    fn upload_vector(&self, vector: Vec<f32>) -> Result<Self::Vector>;
    fn new_cache(&self, shape: CacheShape) -> Result<Self::Cache>;

    /// Rows `ids` of the embedding table.
    fn embed(&self, table: &Self::Matrix, ids: &[u32]) -> Self::Tensor;

    /// RMSNorm over each token, then the preparation that `input` asks for.
    fn norm_quantize(
        &self,
        x: &Self::Tensor,
        norm: Norm<'_, Self::Vector>,
        input: LinearInput,
    ) -> Self::Input;

    /// Prepares `x` as it is (models without sub-norms).
    fn quantize(&self, x: Self::Tensor, input: LinearInput) -> Self::Input;

    /// `x · Wᵀ`
    fn linear(&self, weight: &Self::Matrix, x: &Self::Input) -> Self::Tensor {
        let [out] = self.linears([weight], x);
        out
    }

    /// `x · Wᵀ` for several matrices at once.
    fn linears<const N: usize>(&self, weights: [&Self::Matrix; N], x: &Self::Input) -> [Self::Tensor; N];

    /// `residual += x · Wᵀ`
    fn linear_add(&self, weight: &Self::Matrix, x: &Self::Input, residual: &mut Self::Tensor);

    /// `act(x · gateᵀ) ⊙ (x · upᵀ)`
    fn gate_up(
        &self,
        gate: &Self::Matrix,
        up: &Self::Matrix,
        x: &Self::Input,
        act: Activation,
    ) -> Self::Tensor;

    /// Normalises query and key heads (where the model does), rotates them by `angles`, appends key and
    /// value to layer `input.layer` of the cache at position `cache.len()`, and returns causal
    /// attention `[tokens, heads · head_dim]` over everything up to each token.
    ///
    /// # Errors
    /// `out_of_memory` when the cache cannot grow.
    fn attend(
        &self,
        input: AttentionInput<'_, Self>,
        angles: &RopeAngles,
        cache: &mut Self::Cache,
    ) -> Result<Self::Tensor>;

    /// Makes the positions that every layer appended visible: the cache grows by `tokens`.
    fn commit(&self, cache: &mut Self::Cache, tokens: usize);

    /// The tensor's last `rows` tokens.
    fn last_rows(&self, x: Self::Tensor, rows: usize) -> Self::Tensor;

    /// Copies a tensor to the host, row-major.
    fn read(&self, x: &Self::Tensor) -> Vec<f32>;
}

/// RMSNorm: `x / sqrt(mean(x²) + eps) ⊙ weight` (<https://arxiv.org/abs/1910.07467>).
pub struct Norm<'a, V> {
    pub weight: &'a V,
    pub eps: f32,
}
