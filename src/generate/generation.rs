//! One generation as a state machine. A step is one chunk of the prompt or one token, so that the caller
//! can stop, report progress or yield in between.

use super::options::GenerationOptions;
use super::session::Session;
use super::stop::StopMatcher;
use crate::backend::Backend;
use crate::checkpoint::{GenerationDefaults, SpecialTokens};
use crate::error::invalid;
use crate::model::{LogitRows, Transformer};
use crate::text::Detokenizer;
use crate::{Error, Result};
use serde::Serialize;
use std::collections::VecDeque;

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
pub struct Generation<B: Backend> {
    /// What is run before a token is chosen: the prompt and, of a generation that is continued, its tokens so far.
    given: Vec<u32>,
    /// How many of them are the prompt.
    prompt: usize,
    cached: usize,
    /// Tokens of the result, those of an earlier run among them.
    generated: usize,
    max_tokens: usize,
    context_length: usize,
    stop_tokens: Vec<u32>,
    sampler: B::Sampler,
    /// Tokens that were chosen and not looked at yet, oldest first.
    chosen: VecDeque<B::Choice>,
    /// The token chosen last: the next one to run.
    last: Option<B::Choice>,
    /// Ids of tokens that were looked at and that the session does not list yet.
    seen: VecDeque<u32>,
    detokenizer: Option<Detokenizer>,
    stop: StopMatcher,
    state: State,
}

enum State {
    /// Prompt tokens are left to run.
    Prefill,
    /// Tokens are chosen, run and looked at.
    Decode,
    Finished {
        reason: FinishReason,
        stop_sequence: Option<String>,
        stop_token: Option<u32>,
    },
}

impl<B: Backend> Generation<B> {
    /// Checks everything that can be checked before work starts. `detokenizer` is `None` for a model
    /// without tokenizer: tokens then come without text.
    ///
    /// # Errors
    /// `invalid_argument` for an empty prompt or an option out of range, `context_overflow` for a
    /// prompt that leaves no room for a token.
    pub fn new(
        prompt: Vec<u32>,
        options: &GenerationOptions,
        context: &GenerationContext<'_>,
        mut detokenizer: Option<Detokenizer>,
        model: &Transformer<B>,
        session: &mut Session<B>,
    ) -> Result<Self> {
        if prompt.is_empty() {
            return Err(invalid!("the prompt is empty: give at least one token, or some text"));
        }
        let (prompt_tokens, generated) = (prompt.len(), options.generated.len());
        if prompt_tokens + generated >= context.context_length {
            return Err(context.overflow(prompt_tokens + generated));
        }
        if detokenizer.is_none() && !options.stop.is_empty() {
            return Err(invalid!(
                "stop strings need a tokenizer, and this checkpoint came without one: use stopTokens"
            ));
        }
        let sampling = options.sampler(context.defaults)?;
        let mut given = prompt;
        given.extend(&options.generated);
        let sampler = model.backend().new_sampler(sampling, &given, model.config().vocab_size)?;
        let mut stop = StopMatcher::new(options.stop.clone());
        if let Some(detokenizer) = &mut detokenizer {
            // What was given is not given again, but what was held back comes with what follows.
            options.generated.iter().for_each(|id| drop(stop.push(&detokenizer.push(*id))));
        }
        let mut stop_tokens = options.stop_tokens.clone();
        if !options.ignore_eos {
            stop_tokens.extend(&context.special.eos);
        }
        let max_tokens = options.max_tokens.or(context.defaults.max_new_tokens);
        Ok(Self {
            cached: session.keep_prefix(&given).min(prompt_tokens),
            given,
            prompt: prompt_tokens,
            generated,
            max_tokens: max_tokens.map_or(usize::MAX, |max| max as usize),
            context_length: context.context_length,
            stop_tokens,
            sampler,
            chosen: VecDeque::new(),
            last: None,
            seen: VecDeque::new(),
            detokenizer,
            stop,
            state: State::Prefill,
        })
    }

    /// Does one step. After [`Step::Done`] it keeps returning it.
    ///
    /// # Errors
    /// As [`Session::advance`].
    pub async fn step(&mut self, model: &Transformer<B>, session: &mut Session<B>) -> Result<Step> {
        match &self.state {
            State::Prefill => self.prefill(model, session).await,
            State::Decode => self.decode(model, session).await,
            State::Finished { .. } => Ok(self.done()),
        }
    }

    async fn prefill(&mut self, model: &Transformer<B>, session: &mut Session<B>) -> Result<Step> {
        let from = session.tokens().len();
        let total = self.given.len();
        let to = total.min(from + B::PREFILL_CHUNK);
        let rows = if to == total { LogitRows::Last } else { LogitRows::None };
        match session.run(model, &self.given[from..to], rows)? {
            None => model.backend().settle().await?,
            Some(logits) => {
                self.choose(model, logits, to - from);
                self.state = State::Decode;
            }
        }
        Ok(Step::Prefill { done: to, total })
    }

    fn choose(&mut self, model: &Transformer<B>, logits: B::Tensor, tokens: usize) {
        let choice = model.backend().choose(logits, tokens, &mut self.sampler);
        self.chosen.push_back(choice.clone());
        self.last = Some(choice);
    }

    /// Lets the device run ahead, then looks at the oldest token.
    async fn decode(&mut self, model: &Transformer<B>, session: &mut Session<B>) -> Result<Step> {
        while self.chosen.len() < B::IN_FLIGHT && self.may_run_ahead() {
            let Some(last) = &self.last else { break };
            let Some(logits) = session.run_chosen(model, last)? else { break };
            session.learn(&mut self.seen);
            self.choose(model, logits, 1);
        }
        let Some(oldest) = self.chosen.pop_front() else {
            return Ok(self.done());
        };
        let id = model.backend().chosen(oldest).await?;
        self.seen.push_back(id);
        session.learn(&mut self.seen);
        let step = self.take(id);
        if matches!(self.state, State::Finished { .. }) {
            session.truncate(session.tokens().len());
        }
        Ok(step)
    }

    /// Whether the token after the chosen ones may be wanted.
    fn may_run_ahead(&self) -> bool {
        let generated = self.generated + self.chosen.len();
        generated < self.max_tokens && self.prompt + generated < self.context_length
    }

    /// Takes a chosen token into the text.
    fn take(&mut self, id: u32) -> Step {
        self.generated += 1;
        if self.stop_tokens.contains(&id) {
            self.finish(FinishReason::Stop, None, Some(id));
            return self.done();
        }
        let text = self.detokenizer.as_mut().map(|detokenizer| detokenizer.push(id)).unwrap_or_default();
        let released = self.stop.push(&text);
        let full = self.prompt + self.generated >= self.context_length;
        if released.stop.is_some() {
            self.finish(FinishReason::Stop, released.stop, None);
        } else if self.generated >= self.max_tokens || full {
            self.finish(FinishReason::Length, None, None);
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
                prompt_tokens: self.prompt,
                completion_tokens: self.generated,
                cached_tokens: self.cached,
                total_tokens: self.prompt + self.generated,
            },
        }
    }
}
