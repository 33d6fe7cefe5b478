//! Bytes → [`Engine`]: feeds a [`CheckpointReader`] and moves each finished tensor to the backend at
//! once, so that no second copy of the weights ever exists.

use super::{Engine, TextTools};
use crate::backend::{Backend, KvFormat};
use crate::checkpoint::{Checkpoint, CheckpointReader, LoadedTensor, ReadOptions};
use crate::error::invalid;
use crate::generate::Session;
use crate::model::{Tensor, Transformer, WeightsBuilder};
use crate::text::{ChatTemplate, Tokenizer, builtin_template};
use crate::{Error, Result};

/// How a model is loaded.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Positions of the KV cache; the model's own maximum, at most [`DEFAULT_CONTEXT`], when `None`.
    pub context_length: Option<usize>,
    pub kv_format: KvFormat,
    pub read: ReadOptions,
}

/// Context length where neither the caller nor a shorter model limits it.
pub const DEFAULT_CONTEXT: usize = 4096;

/// Takes the files of one checkpoint, piece by piece.
pub struct Loader<B: Backend> {
    reader: CheckpointReader,
    builder: WeightsBuilder<B::Matrix, B::Vector>,
    backend: B,
    options: EngineOptions,
    weight_bytes: usize,
}

impl<B: Backend> Loader<B> {
    /// # Errors
    /// `invalid_argument` for a context length of 0.
    pub fn new(backend: B, options: EngineOptions) -> Result<Self> {
        if options.context_length == Some(0) {
            return Err(invalid!("contextLength must be at least 1"));
        }
        Ok(Self {
            reader: CheckpointReader::new(options.read.clone()),
            builder: WeightsBuilder::default(),
            backend,
            options,
            weight_bytes: 0,
        })
    }

    /// What has been read so far.
    pub fn reader(&self) -> &CheckpointReader {
        &self.reader
    }

    /// The context length that the model will be loaded with, once its config is known.
    pub fn context_length(&self) -> Option<usize> {
        let max = self.reader.config()?.max_context;
        Some(context_length(self.options.context_length, max))
    }

    pub fn kv_format(&self) -> KvFormat {
        self.options.kv_format
    }

    /// # Errors
    /// As [`CheckpointReader::begin_file`].
    pub fn begin_file(&mut self, name: &str, size: Option<u64>) -> Result<()> {
        self.reader.begin_file(name, size)
    }

    /// # Errors
    /// As [`CheckpointReader::push`] and the backend's uploads.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.reader.push(bytes)?;
        let tensors = self.reader.take_tensors();
        self.upload(tensors)
    }

    /// # Errors
    /// As [`CheckpointReader::end_file`].
    pub fn end_file(&mut self) -> Result<()> {
        self.reader.end_file()
    }

    /// The engine, once all files were pushed.
    ///
    /// # Errors
    /// `corrupt_file` when something is missing or does not fit together.
    pub fn finish(mut self) -> Result<Engine<B>> {
        let reader = std::mem::take(&mut self.reader);
        let (checkpoint, rest) = reader.finish()?;
        self.upload(rest)?;
        let context_length = context_length(self.options.context_length, checkpoint.config.max_context);
        let text = text_tools(&checkpoint)?;
        let weights = self.builder.finish(&checkpoint.config)?;
        let transformer = Transformer::new(self.backend, checkpoint.config, weights)?;
        let session = Session::new(&transformer, self.options.kv_format)?;
        Ok(Engine {
            transformer,
            text,
            special: checkpoint.special,
            defaults: checkpoint.defaults,
            context_length,
            kv_format: self.options.kv_format,
            weight_bytes: self.weight_bytes,
            session,
            job: None,
        })
    }

    fn upload(&mut self, tensors: Vec<LoadedTensor>) -> Result<()> {
        for LoadedTensor { role, value } in tensors {
            let value = match value {
                Tensor::Matrix(matrix) => {
                    self.weight_bytes += matrix.resident_bytes();
                    Tensor::Matrix(self.backend.upload_matrix(matrix)?)
                }
                Tensor::Vector(vector) => {
                    self.weight_bytes += size_of_val(&vector[..]);
                    Tensor::Vector(self.backend.upload_vector(vector)?)
                }
            };
            self.builder.insert(role, value)?;
        }
        Ok(())
    }
}

fn context_length(wanted: Option<usize>, model_max: usize) -> usize {
    wanted.unwrap_or(DEFAULT_CONTEXT).min(model_max)
}

fn text_tools(checkpoint: &Checkpoint) -> Result<TextTools> {
    let tokenizer = checkpoint.tokenizer.as_ref().map(Tokenizer::from_source).transpose()?;
    if let Some(tokenizer) = &tokenizer {
        tokenizer.check_vocab(checkpoint.config.vocab_size)?;
    }
    let named = |given: &Option<String>, id: Option<u32>| {
        let from_id = || id.and_then(|id| tokenizer.as_ref()?.token_text(id));
        given.clone().or_else(from_id).unwrap_or_default()
    };
    let bos_token = named(&checkpoint.template.bos_token, checkpoint.special.bos);
    let eos_token = named(&checkpoint.template.eos_token, checkpoint.special.eos.first().copied());
    let source = match &tokenizer {
        Some(tokenizer) => builtin_template(
            &checkpoint.config.architecture,
            checkpoint.template.jinja.as_deref(),
            tokenizer,
        ),
        None => checkpoint.template.jinja.clone(),
    };
    let template = source.as_deref().map(ChatTemplate::new).transpose()?;
    Ok(TextTools { tokenizer, template, bos_token, eos_token })
}
