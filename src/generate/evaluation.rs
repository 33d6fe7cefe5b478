//! Logits and losses of given tokens, chunk by chunk.

use super::session::Session;
use crate::backend::{Backend, KvFormat};
use crate::error::invalid;
use crate::model::{LogitRows, Transformer};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Tokens of one step: each has a row of logits, which are read and held.
const EVALUATION_CHUNK: usize = 16;

/// What an evaluation returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvaluationKind {
    /// `[tokens, vocab_size]` logits.
    Logits,
    /// The negative log-likelihood (nats) of every token after the first.
    Nll,
}

/// The next values of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationStep {
    pub done: usize,
    pub total: usize,
    pub values: Vec<f32>,
}

/// A running evaluation. It has a session of its own: the conversation's cache stays as it is.
pub struct Evaluation<B: Backend> {
    ids: Vec<u32>,
    kind: EvaluationKind,
    context_length: usize,
    done: usize,
    session: Session<B>,
}

impl<B: Backend> Evaluation<B> {
    /// # Errors
    /// `invalid_argument` for too few ids, `context_overflow` where logits are asked for more ids than
    /// the context holds. (Losses of a longer text are taken in windows of the context's length.)
    pub fn new(
        model: &Transformer<B>,
        ids: Vec<u32>,
        kind: EvaluationKind,
        format: KvFormat,
        context_length: usize,
    ) -> Result<Self> {
        let least = if kind == EvaluationKind::Nll { 2 } else { 1 };
        if ids.len() < least {
            return Err(invalid!("there are {} tokens to evaluate; at least {least} are needed", ids.len()));
        }
        if kind == EvaluationKind::Logits && ids.len() > context_length {
            return Err(Error::ContextOverflow(format!(
                "{} tokens do not fit the context of {context_length}: give fewer, or load the model with a larger \
                 contextLength",
                ids.len()
            )));
        }
        Ok(Self { ids, kind, context_length, done: 0, session: Session::new(model, format)? })
    }

    /// Evaluates the next chunk; `done == total` is the end.
    ///
    /// # Errors
    /// As [`Session::advance`].
    pub async fn step(&mut self, model: &Transformer<B>) -> Result<EvaluationStep> {
        let total = self.ids.len();
        if self.session.tokens().len() >= self.context_length {
            // The next window's first token was predicted by the last of this one.
            self.session.truncate(0);
        }
        let room = self.context_length - self.session.tokens().len();
        let to = total.min(self.done + EVALUATION_CHUNK.min(room));
        let ids = &self.ids[self.done..to];
        let logits = self.session.advance(model, ids, LogitRows::All).await?.unwrap_or_default();
        let values = match self.kind {
            EvaluationKind::Logits => logits,
            EvaluationKind::Nll => {
                let targets = &self.ids[self.done + 1..total.min(to + 1)];
                let rows = logits.chunks_exact(model.config().vocab_size);
                rows.zip(targets).map(|(row, target)| nll(row, *target)).collect()
            }
        };
        self.done = to;
        Ok(EvaluationStep { done: to, total, values })
    }
}

/// `-ln softmax(logits)[target]`
fn nll(logits: &[f32], target: u32) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - max).exp()).sum();
    (sum.ln() - f64::from(logits[target as usize] - max)) as f32
}
