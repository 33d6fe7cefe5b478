//! Devices behind one trait. A verb of [`Backend`] is one fused step of the forward pass, the unit at
//! which kernels are written and compared; [`crate::model::Transformer`] is written over these verbs
//! and knows no device.
//!
//! Invariant: the integer part of a ternary product is exact, so every backend gives the same sums;
//! only float reductions may differ.

pub mod cpu;
pub mod gpu;

use crate::Result;
use crate::generate::sampler::SamplerOptions;
use crate::model::{Activation, LinearInput, ModelConfig, RopeFrequencies};
use crate::quant::Matrix;
use std::ops::Range;

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvFormat {
    F32,
    F16,
    /// 16-bit integers, with a scale for each head's vector: as small and as exact as [`Self::F16`], and faster on a
    /// CPU, which multiplies them without conversion.
    #[default]
    Q16,
    /// Bytes, with a scale for each head's vector.
    Q8,
}

impl KvFormat {
    /// Bytes of one head's key or value.
    pub fn vector_bytes(self, head_dim: usize) -> usize {
        match self {
            KvFormat::F32 => 4 * head_dim,
            KvFormat::F16 => 2 * head_dim,
            KvFormat::Q16 => 2 * head_dim + size_of::<f32>(),
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

    /// Bytes allocated.
    fn resident_bytes(&self) -> usize;

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

/// The tokens of a step.
pub enum TokenIds<'a, C> {
    /// Ids that the host knows.
    Given(&'a [u32]),
    /// The one token that the device chose last; the host need not have seen it yet.
    Chosen(&'a C),
}

impl<C> TokenIds<'_, C> {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            TokenIds::Given(ids) => ids.len(),
            TokenIds::Chosen(_) => 1,
        }
    }
}

impl<C> Clone for TokenIds<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for TokenIds<'_, C> {}

/// A device that can run the forward pass. Activations are `[tokens, width]`; a decode step is the
/// case `tokens == 1`.
///
/// Verbs that return no future may only record what is to be done. What they cannot know yet, a lost device
/// among it, is told by the next verb that does return one.
pub trait Backend {
    /// Prompt tokens of one step: enough for the weights to be used many times while they are at hand, few
    /// enough to stop soon.
    const PREFILL_CHUNK: usize;
    /// Tokens that may be chosen before the first of them is looked at.
    const IN_FLIGHT: usize;
    /// Dense matrices that keep more than this come in parts of about as many bytes, which
    /// [`Self::stack`] joins. `None` where a matrix is best given whole.
    const PART_BYTES: Option<usize>;

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
    /// What RoPE turns the positions of a step by.
    type Angles;
    /// The state of one generation's sampling.
    type Sampler;
    /// A token that was chosen, perhaps not yet known to the host.
    type Choice: Clone;

    /// Gets ready for a model of this kind: a device that has a choice of kernels tries and chooses them.
    ///
    /// # Errors
    /// `unsupported_browser` when the device does not compute right.
    fn prepare(&self, config: &ModelConfig, kv_format: KvFormat) -> impl Future<Output = Result<()>>;

    fn upload_matrix(&self, matrix: Matrix) -> Result<Self::Matrix>;
    /// One matrix of the rows of several, in their order.
    ///
    /// # Errors
    /// `invalid_argument` for none, or for matrices that do not fit together.
    fn stack(&self, parts: Vec<Self::Matrix>) -> Result<Self::Matrix>;
    fn upload_vector(&self, vector: Vec<f32>) -> Result<Self::Vector>;
    /// The nearest to `wanted` in which the device keeps keys and values.
    fn kv_format(&self, wanted: KvFormat) -> KvFormat;
    fn new_cache(&self, shape: CacheShape) -> Result<Self::Cache>;

    /// Begins a step: rows `ids` of the embedding table, the first of them at `position` of the context.
    fn embed(&self, table: &Self::Matrix, ids: TokenIds<'_, Self::Choice>, position: usize) -> Self::Tensor;

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

    /// Sine and cosine for `positions`.
    fn angles(&self, frequencies: &RopeFrequencies, positions: Range<usize>) -> Self::Angles;

    /// Normalises query and key heads (where the model does), rotates them by `angles`, appends key and
    /// value to layer `input.layer` of the cache at position `cache.len()`, and returns causal
    /// attention `[tokens, heads · head_dim]` over everything up to each token.
    ///
    /// # Errors
    /// `out_of_memory` when the cache cannot grow.
    fn attend(
        &self,
        input: AttentionInput<'_, Self>,
        angles: &Self::Angles,
        cache: &mut Self::Cache,
    ) -> Result<Self::Tensor>;

    /// Makes the positions that every layer appended visible: the cache grows by `tokens`.
    fn commit(&self, cache: &mut Self::Cache, tokens: usize);

    /// The tensor's last `rows` tokens.
    fn last_rows(&self, x: Self::Tensor, rows: usize) -> Self::Tensor;

    /// Copies a tensor to the host, row-major.
    ///
    /// # Errors
    /// What went wrong on the device since it was last asked: `device_lost`, `out_of_memory`.
    fn read(&self, x: &Self::Tensor) -> impl Future<Output = Result<Vec<f32>>>;

    /// Ends when everything asked for so far is done.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn settle(&self) -> impl Future<Output = Result<()>>;

    /// A sampler for a vocabulary of `vocab_size` in which `said` were said already.
    ///
    /// # Errors
    /// `out_of_memory`
    fn new_sampler(&self, options: SamplerOptions, said: &[u32], vocab_size: usize) -> Result<Self::Sampler>;

    /// Chooses the token after the last row of `logits`, which came of a step of `tokens` tokens, and takes it
    /// as said.
    fn choose(&self, logits: Self::Tensor, tokens: usize, sampler: &mut Self::Sampler) -> Self::Choice;

    /// The chosen token's id.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn chosen(&self, choice: Self::Choice) -> impl Future<Output = Result<u32>>;
}

/// RMSNorm: `x / sqrt(mean(x²) + eps) ⊙ weight` (<https://arxiv.org/abs/1910.07467>).
pub struct Norm<'a, V> {
    pub weight: &'a V,
    pub eps: f32,
}
