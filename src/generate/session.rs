//! A conversation's memory: the KV cache and the tokens it stands for.

use crate::Result;
use crate::backend::{Backend, KvCache, KvFormat};
use crate::model::{LogitRows, Transformer};

/// A KV cache together with the ids it was made from.
pub struct Session<B: Backend> {
    cache: B::Cache,
    tokens: Vec<u32>,
}

impl<B: Backend> Session<B> {
    /// An empty session.
    ///
    /// # Errors
    /// `out_of_memory`
    pub fn new(model: &Transformer<B>, format: KvFormat) -> Result<Self> {
        let cache = model.backend().new_cache(model.cache_shape(format))?;
        Ok(Self { cache, tokens: Vec::new() })
    }

    /// The ids in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub fn cache(&self) -> &B::Cache {
        &self.cache
    }

    /// Forgets every position from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.cache.truncate(len);
    }

    /// Keeps the longest common prefix with `prompt`, less one token where the whole prompt is known
    /// (its last token must be run again for its logits). Returns how many ids were kept.
    pub fn keep_prefix(&mut self, prompt: &[u32]) -> usize {
        let common = self.tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        self.truncate(common.min(prompt.len().saturating_sub(1)));
        self.tokens.len()
    }

    /// Runs `ids` and returns the logits asked for, row-major.
    ///
    /// # Errors
    /// As [`Transformer::forward`]; the session is then as it was.
    pub fn advance(
        &mut self,
        model: &Transformer<B>,
        ids: &[u32],
        rows: LogitRows,
    ) -> Result<Option<Vec<f32>>> {
        let logits = model.forward(ids, &mut self.cache, rows)?;
        self.tokens.extend(ids);
        Ok(logits.map(|logits| model.backend().read(&logits)))
    }
}
