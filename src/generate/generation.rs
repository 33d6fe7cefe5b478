//! One generation as a state machine. A step is one chunk of the prompt or one token, so that the caller
//! can stop, report progress or yield in between.

use super::options::GenerationOptions;
use super::sampler::Sampler;
use super::session::Session;
use super::stop::StopMatcher;
use crate::backend::Backend;
use crate::checkpoint::{GenerationDefaults, SpecialTokens};
use crate::error::invalid;
use crate::model::{LogitRows, Transformer};
use crate::text::Detokenizer;
use crate::{Error, Result};
use serde::Serialize;

/// Prompt tokens of one step: enough for the weights to be used many times while they are in the cache,
/// few enough to stop soon.
pub const PREFILL_CHUNK: usize = 16;

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishReason {
    /// An end-of-sequence token, a stop token or a stop string.
    Stop,
    /// `max_tokens` or the context was reached.
    Length,
}

/// Token counts of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub prompt_tokens: usize,
    /// Every sampled token, an end-of-sequence token included.
    pub completion_tokens: usize,
    /// Prompt tokens whose keys and values were still in the cache.
    pub cached_tokens: usize,
    pub total_tokens: usize,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Step {
    Prefill {
        done: usize,
        total: usize,
    },
    /// A token; `text` is what became showable with it and may be empty.
    Token {
        id: u32,
        text: String,
    },
    Done {
        /// Text that was held back until the end.
        text: String,
        finish_reason: FinishReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_sequence: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_token: Option<u32>,
        usage: Usage,
    },
}

/// What a generation needs to know of its model.
pub struct GenerationContext<'a> {
    pub special: &'a SpecialTokens,
    pub defaults: &'a GenerationDefaults,
    pub context_length: usize,
    /// The longest context that the model could have been loaded with.
    pub max_context: usize,
}

impl GenerationContext<'_> {
    fn overflow(&self, prompt: usize) -> Error {
        let more = if self.context_length < self.max_context {
            format!(", or load the model with a larger contextLength (it goes up to {})", self.max_context)
        } else {
            String::new()
        };
        Error::ContextOverflow(format!(
            "the prompt has {prompt} tokens and the context holds {}, with room for at least one new token: \
             shorten the prompt or drop old messages{more}",
            self.context_length
        ))
    }
}

/// A running generation.
pub struct Generation {
    prompt: Vec<u32>,
    cached: usize,
    generated: usize,
    max_tokens: usize,
    context_length: usize,
    stop_tokens: Vec<u32>,
    sampler: Sampler,
    detokenizer: Option<Detokenizer>,
    stop: StopMatcher,
    state: State,
}

enum State {
    /// Prompt tokens are left to run.
    Prefill,
    /// Logits of the next token are there.
    Sample(Vec<f32>),
    /// A token was chosen and must be run first.
    Run(u32),
    Finished {
        reason: FinishReason,
        stop_sequence: Option<String>,
        stop_token: Option<u32>,
    },
}

impl Generation {
    /// Checks everything that can be checked before work starts. `detokenizer` is `None` for a model
    /// without tokenizer: tokens then come without text.
    ///
    /// # Errors
    /// `invalid_argument` for an empty prompt or an option out of range, `context_overflow` for a
    /// prompt that leaves no room for a token.
    pub fn new<B: Backend>(
        prompt: Vec<u32>,
        options: &GenerationOptions,
        context: &GenerationContext<'_>,
        detokenizer: Option<Detokenizer>,
        session: &mut Session<B>,
    ) -> Result<Self> {
        if prompt.is_empty() {
            return Err(invalid!("the prompt is empty: give at least one token, or some text"));
        }
        if prompt.len() >= context.context_length {
            return Err(context.overflow(prompt.len()));
        }
        if detokenizer.is_none() && !options.stop.is_empty() {
            return Err(invalid!(
                "stop strings need a tokenizer, and this checkpoint came without one: use stopTokens"
            ));
        }
        let mut sampler = Sampler::new(options.sampler(context.defaults)?);
        sampler.observe(&prompt);
        let mut stop_tokens = options.stop_tokens.clone();
        if !options.ignore_eos {
            stop_tokens.extend(&context.special.eos);
        }
        let max_tokens = options.max_tokens.or(context.defaults.max_new_tokens);
        Ok(Self {
            cached: session.keep_prefix(&prompt),
            prompt,
            generated: 0,
            max_tokens: max_tokens.map_or(usize::MAX, |max| max as usize),
            context_length: context.context_length,
            stop_tokens,
            sampler,
            detokenizer,
            stop: StopMatcher::new(options.stop.clone()),
            state: State::Prefill,
        })
    }

    /// Does one step. After [`Step::Done`] it keeps returning it.
    ///
    /// # Errors
    /// As [`Session::advance`].
    pub fn step<B: Backend>(&mut self, model: &Transformer<B>, session: &mut Session<B>) -> Result<Step> {
        match &mut self.state {
            State::Prefill => self.prefill(model, session),
            State::Run(id) => {
                let logits = session.advance(model, &[*id], LogitRows::Last)?.unwrap_or_default();
                Ok(self.choose(logits))
            }
            State::Sample(logits) => {
                let logits = std::mem::take(logits);
                Ok(self.choose(logits))
            }
            State::Finished { .. } => Ok(self.done()),
        }
    }

    fn prefill<B: Backend>(&mut self, model: &Transformer<B>, session: &mut Session<B>) -> Result<Step> {
        let from = session.tokens().len();
        let total = self.prompt.len();
        let to = total.min(from + PREFILL_CHUNK);
        let rows = if to == total { LogitRows::Last } else { LogitRows::None };
        if let Some(logits) = session.advance(model, &self.prompt[from..to], rows)? {
            self.state = State::Sample(logits);
        }
        Ok(Step::Prefill { done: to, total })
    }

    fn choose(&mut self, mut logits: Vec<f32>) -> Step {
        let id = self.sampler.sample(&mut logits);
        self.sampler.observe(&[id]);
        self.generated += 1;
        if self.stop_tokens.contains(&id) {
            self.finish(FinishReason::Stop, None, Some(id));
            return self.done();
        }
        let text = self.detokenizer.as_mut().map(|detokenizer| detokenizer.push(id)).unwrap_or_default();
        let released = self.stop.push(&text);
        let full = self.prompt.len() + self.generated >= self.context_length;
        if released.stop.is_some() {
            self.finish(FinishReason::Stop, released.stop, None);
        } else if self.generated >= self.max_tokens || full {
            self.finish(FinishReason::Length, None, None);
        } else {
            self.state = State::Run(id);
        }
        Step::Token { id, text: released.text }
    }

    fn finish(&mut self, reason: FinishReason, stop_sequence: Option<String>, stop_token: Option<u32>) {
        self.state = State::Finished { reason, stop_sequence, stop_token };
    }

    fn done(&mut self) -> Step {
        // A character whose last bytes did not come is left out rather than shown broken.
        let text = self.stop.finish();
        let State::Finished { reason, stop_sequence, stop_token } = &self.state else {
            unreachable!("done() is called in the finished state only");
        };
        Step::Done {
            text,
            finish_reason: *reason,
            stop_sequence: stop_sequence.clone(),
            stop_token: *stop_token,
            usage: Usage {
                prompt_tokens: self.prompt.len(),
                completion_tokens: self.generated,
                cached_tokens: self.cached,
                total_tokens: self.prompt.len() + self.generated,
            },
        }
    }
}
