//! A conversation's memory: the KV cache and the tokens it stands for.

use crate::Result;
use crate::backend::{Backend, KvCache, KvFormat, TokenIds};
use crate::model::{LogitRows, Transformer};
use std::collections::VecDeque;

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

    /// The ids in the cache, as far as they are known.
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
    /// As [`Transformer::forward`]; the session is then as it was. As [`Backend::read`].
    pub async fn advance(
        &mut self,
        model: &Transformer<B>,
        ids: &[u32],
        rows: LogitRows,
    ) -> Result<Option<Vec<f32>>> {
        match self.run(model, ids, rows)? {
            None => {
                model.backend().settle().await?;
                Ok(None)
            }
            Some(logits) => Ok(Some(model.backend().read(&logits).await?)),
        }
    }

    /// Runs `ids` and returns the logits asked for, where the device has them.
    ///
    /// # Errors
    /// As [`Transformer::forward`]; the session is then as it was.
    pub fn run(&mut self, model: &Transformer<B>, ids: &[u32], rows: LogitRows) -> Result<Option<B::Tensor>> {
        let logits = model.forward(TokenIds::Given(ids), &mut self.cache, rows)?;
        self.tokens.extend(ids);
        Ok(logits)
    }

    /// Runs the token that the device chose last and returns the logits after it. The session learns the
    /// token's id with [`Self::learn`].
    ///
    /// # Errors
    /// As [`Transformer::forward`].
    pub fn run_chosen(&mut self, model: &Transformer<B>, choice: &B::Choice) -> Result<Option<B::Tensor>> {
        model.forward(TokenIds::Chosen(choice), &mut self.cache, LogitRows::Last)
    }

    /// Takes the ids of tokens that were run before they were known, oldest first, as far as they were run.
    pub fn learn(&mut self, ids: &mut VecDeque<u32>) {
        let unknown = self.cache.len() - self.tokens.len();
        self.tokens.extend(ids.drain(..unknown.min(ids.len())));
    }
}
