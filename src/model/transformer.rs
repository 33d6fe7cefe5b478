//! The forward pass, written once over [`Backend`]. It reads like the papers it follows: LLaMA
//! (<https://arxiv.org/abs/2302.13971>) with the sub-norms and squared ReLU of BitNet b1.58 2B4T
//! (<https://arxiv.org/abs/2504.12285>) or the query/key norms of Qwen3
//! (<https://arxiv.org/abs/2505.09388>) where the config has them.

use super::ModelConfig;
use super::rope::RopeFrequencies;
use super::weights::{Layer, Weights};
use crate::Result;
use crate::backend::{AttentionInput, Backend, CacheShape, KvCache, KvFormat, Norm, TokenIds};
use crate::error::{corrupt, invalid};

/// Which positions' logits a pass returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitRows {
    None,
    Last,
    All,
}

/// A model on a device.
pub struct Transformer<B: Backend> {
    backend: B,
    config: ModelConfig,
    weights: Weights<B::Matrix, B::Vector>,
    frequencies: RopeFrequencies,
}

impl<B: Backend> Transformer<B> {
    /// # Errors
    /// `corrupt_file` when the config asks for an impossible rotary embedding.
    pub fn new(backend: B, config: ModelConfig, weights: Weights<B::Matrix, B::Vector>) -> Result<Self> {
        if weights.layers.len() != config.num_layers {
            return Err(corrupt!(
                "the config says {} layers, the checkpoint holds {}",
                config.num_layers,
                weights.layers.len()
            ));
        }
        let frequencies = RopeFrequencies::new(&config)?;
        Ok(Self { backend, config, weights, frequencies })
    }

    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    pub fn backend(&self) -> &B {
        &self.backend
    }

    pub fn weights(&self) -> &Weights<B::Matrix, B::Vector> {
        &self.weights
    }

    pub fn cache_shape(&self, format: KvFormat) -> CacheShape {
        CacheShape {
            layers: self.config.num_layers,
            kv_heads: self.config.num_kv_heads,
            head_dim: self.config.head_dim,
            format,
        }
    }

    /// Runs `ids` at positions `cache.len()..` and appends them to the cache. The result is
    /// `[rows, vocab_size]` for the rows asked for, `None` for [`LogitRows::None`].
    ///
    /// # Errors
    /// `invalid_argument` for a token id outside the vocabulary, `out_of_memory` when the cache cannot
    /// grow; the cache is then as it was.
    pub fn forward(
        &self,
        ids: TokenIds<'_, B::Choice>,
        cache: &mut B::Cache,
        rows: LogitRows,
    ) -> Result<Option<B::Tensor>> {
        self.forward_observed(ids, cache, rows, |_, _| {})
    }

    /// [`Self::forward`] that shows each hidden state on the way: `observe(0, embedding)`, then
    /// `observe(i, output of layer i)`, all before the final norm.
    pub fn forward_observed(
        &self,
        ids: TokenIds<'_, B::Choice>,
        cache: &mut B::Cache,
        rows: LogitRows,
        mut observe: impl FnMut(usize, &B::Tensor),
    ) -> Result<Option<B::Tensor>> {
        if let TokenIds::Given(ids) = ids {
            self.check_ids(ids)?;
        }
        let (start, count) = (cache.len(), ids.count());
        let angles = self.backend.angles(&self.frequencies, start..start + count);
        let mut hidden = self.backend.embed(&self.weights.embedding, ids, start);
        observe(0, &hidden);
        for (index, layer) in self.weights.layers.iter().enumerate() {
            self.attention(index, layer, &mut hidden, &angles, cache)?;
            self.feed_forward(layer, &mut hidden);
            observe(index + 1, &hidden);
        }
        self.backend.commit(cache, count);
        let wanted = match rows {
            LogitRows::None => return Ok(None),
            LogitRows::Last => 1.min(count),
            LogitRows::All => count,
        };
        let last = self.backend.last_rows(hidden, wanted);
        let normed =
            self.backend.norm_quantize(&last, self.norm(&self.weights.output_norm), self.config.linear_input);
        Ok(Some(self.backend.linear(self.weights.head(), &normed)))
    }

    fn attention(
        &self,
        index: usize,
        layer: &Layer<B::Matrix, B::Vector>,
        hidden: &mut B::Tensor,
        angles: &B::Angles,
        cache: &mut B::Cache,
    ) -> Result<()> {
        let backend = &self.backend;
        let x = backend.norm_quantize(hidden, self.norm(&layer.attn_norm), self.config.linear_input);
        let [query, key, value] = backend.linears([&layer.query, &layer.key, &layer.value], &x);
        let heads = backend.attend(
            AttentionInput {
                layer: index,
                query,
                key,
                value,
                query_norm: layer.query_norm.as_ref(),
                key_norm: layer.key_norm.as_ref(),
                norm_eps: self.config.norm_eps,
            },
            angles,
            cache,
        )?;
        let heads = self.prepare(heads, layer.attn_sub_norm.as_ref());
        backend.linear_add(&layer.attn_output, &heads, hidden);
        Ok(())
    }

    fn feed_forward(&self, layer: &Layer<B::Matrix, B::Vector>, hidden: &mut B::Tensor) {
        let backend = &self.backend;
        let x = backend.norm_quantize(hidden, self.norm(&layer.ffn_norm), self.config.linear_input);
        let inner = backend.gate_up(&layer.gate, &layer.up, &x, self.config.activation);
        let inner = self.prepare(inner, layer.ffn_sub_norm.as_ref());
        backend.linear_add(&layer.down, &inner, hidden);
    }

    /// The input of a branch's last linear: through the sub-norm where the family has one.
    fn prepare(&self, x: B::Tensor, sub_norm: Option<&B::Vector>) -> B::Input {
        match sub_norm {
            Some(weight) => self.backend.norm_quantize(&x, self.norm(weight), self.config.linear_input),
            None => self.backend.quantize(x, self.config.linear_input),
        }
    }

    fn norm<'a>(&self, weight: &'a B::Vector) -> Norm<'a, B::Vector> {
        Norm { weight, eps: self.config.norm_eps }
    }

    fn check_ids(&self, ids: &[u32]) -> Result<()> {
        match ids.iter().find(|id| **id as usize >= self.config.vocab_size) {
            None => Ok(()),
            Some(id) => Err(invalid!(
                "token id {id} is outside the model's vocabulary of {}: was the text encoded with another \
                 model's tokenizer?",
                self.config.vocab_size
            )),
        }
    }
}
