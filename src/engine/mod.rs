//! A loaded model as one thing: transformer, tokenizer, chat template, conversation cache, and one job
//! at a time. This is what `web` binds to JavaScript and what native tests drive.

mod loader;
mod text_tools;

pub use loader::{DEFAULT_CONTEXT, EngineOptions, Loader};
pub use text_tools::TextTools;

use crate::Result;
use crate::backend::{Backend, KvFormat};
use crate::checkpoint::{GenerationDefaults, SpecialTokens};
use crate::error::invalid;
use crate::generate::generation::GenerationContext;
use crate::generate::{
    Evaluation, EvaluationKind, Generation, GenerationOptions, Session, Step, evaluation::EvaluationStep,
};
use crate::model::{ModelConfig, Transformer};
use crate::text::{Detokenizer, Message, RenderOptions, Tokenizer};
use std::rc::Rc;

/// A model that is ready to run.
pub struct Engine<B: Backend> {
    transformer: Transformer<B>,
    text: Rc<TextTools>,
    special: SpecialTokens,
    defaults: GenerationDefaults,
    context_length: usize,
    kv_format: KvFormat,
    weight_bytes: usize,
    session: Session<B>,
    job: Option<Job<B>>,
}

enum Job<B: Backend> {
    Generation(Box<Generation<B>>),
    Evaluation(Evaluation<B>),
}

impl<B: Backend> Engine<B> {
    pub fn config(&self) -> &ModelConfig {
        self.transformer.config()
    }

    pub fn transformer(&self) -> &Transformer<B> {
        &self.transformer
    }

    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    pub fn defaults(&self) -> &GenerationDefaults {
        &self.defaults
    }

    pub fn context_length(&self) -> usize {
        self.context_length
    }

    pub fn kv_format(&self) -> KvFormat {
        self.kv_format
    }

    /// Bytes of the weights.
    pub fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }

    /// The conversation whose cache the next generation may reuse.
    pub fn session(&self) -> &Session<B> {
        &self.session
    }

    /// Tokenizer and chat template.
    pub fn text(&self) -> &Rc<TextTools> {
        &self.text
    }

    /// # Errors
    /// As [`TextTools::tokenizer`].
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        self.text.tokenizer()
    }

    /// # Errors
    /// As [`TextTools::apply_chat_template`].
    pub fn apply_chat_template(&self, messages: &[Message], options: RenderOptions) -> Result<String> {
        self.text.apply_chat_template(messages, options)
    }

    /// # Errors
    /// As [`TextTools::encode_chat`].
    pub fn encode_chat(&self, messages: &[Message], options: RenderOptions) -> Result<Vec<u32>> {
        self.text.encode_chat(messages, options)
    }

    /// Starts a generation; an unfinished job is dropped. The cache of the last conversation is reused
    /// as far as the prompts agree.
    ///
    /// # Errors
    /// As [`Generation::new`].
    pub fn start_generation(&mut self, prompt: Vec<u32>, options: &GenerationOptions) -> Result<()> {
        self.job = None;
        let context = GenerationContext {
            special: &self.special,
            defaults: &self.defaults,
            context_length: self.context_length,
            max_context: self.transformer.config().max_context,
        };
        let detokenizer = if options.new_text { Detokenizer::new } else { Detokenizer::continuing };
        let detokenizer = self.text.tokenizer().ok().map(detokenizer);
        let generation =
            Generation::new(prompt, options, &context, detokenizer, &self.transformer, &mut self.session)?;
        self.job = Some(Job::Generation(Box::new(generation)));
        Ok(())
    }

    /// Does one step of the generation.
    ///
    /// # Errors
    /// `invalid_argument` when none was started; otherwise as [`Generation::step`].
    pub async fn step(&mut self) -> Result<Step> {
        match &mut self.job {
            Some(Job::Generation(generation)) => generation.step(&self.transformer, &mut self.session).await,
            _ => Err(invalid!("no generation is running: call startGeneration first")),
        }
    }

    /// Starts an evaluation; an unfinished job is dropped.
    ///
    /// # Errors
    /// As [`Evaluation::new`].
    pub fn start_evaluation(&mut self, ids: Vec<u32>, kind: EvaluationKind) -> Result<()> {
        self.job = None;
        let evaluation = Evaluation::new(&self.transformer, ids, kind, self.kv_format, self.context_length)?;
        self.job = Some(Job::Evaluation(evaluation));
        Ok(())
    }

    /// Does one step of the evaluation.
    ///
    /// # Errors
    /// `invalid_argument` when none was started; otherwise as [`Evaluation::step`].
    pub async fn evaluate_step(&mut self) -> Result<EvaluationStep> {
        let Some(Job::Evaluation(evaluation)) = &mut self.job else {
            return Err(invalid!("no evaluation is running: call startEvaluation first"));
        };
        let step = evaluation.step(&self.transformer).await?;
        if step.done == step.total {
            self.job = None;
        }
        Ok(step)
    }

    /// Forgets the conversation and frees its cache.
    ///
    /// # Errors
    /// `out_of_memory`
    pub fn reset_cache(&mut self) -> Result<()> {
        self.job = None;
        self.session = Session::new(&self.transformer, self.kv_format)?;
        Ok(())
    }
}
