//! Bytes → [`Engine`]: feeds a [`CheckpointReader`] and moves each finished tensor to the backend at
//! once, so that no second copy of the weights ever exists.

use super::{Engine, TextTools};
use crate::Result;
use crate::backend::{Backend, KvFormat};
use crate::checkpoint::{CheckpointReader, LoadedTensor, ReadOptions};
use crate::error::invalid;
use crate::generate::Session;
use crate::model::{Tensor, Transformer, WeightsBuilder};
use std::rc::Rc;

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

/// Bytes that a device may be given before it is waited for.
const MOST_IN_FLIGHT: usize = 64 << 20;

/// Takes the files of one checkpoint, piece by piece.
pub struct Loader<B: Backend> {
    reader: CheckpointReader,
    uploader: Uploader<B>,
    options: EngineOptions,
}

/// Where finished tensors go.
struct Uploader<B: Backend> {
    backend: B,
    builder: WeightsBuilder<B::Matrix, B::Vector>,
    weight_bytes: usize,
    /// Bytes that were given to the device since it was last waited for.
    in_flight: usize,
    /// The rows so far of a matrix that comes in parts.
    rows: Vec<B::Matrix>,
}

impl<B: Backend> Loader<B> {
    /// # Errors
    /// `invalid_argument` for a context length of 0.
    pub fn new(backend: B, mut options: EngineOptions) -> Result<Self> {
        if options.context_length == Some(0) {
            return Err(invalid!("contextLength must be at least 1"));
        }
        options.read.part_bytes = B::PART_BYTES;
        options.kv_format = backend.kv_format(options.kv_format);
        Ok(Self {
            reader: CheckpointReader::new(options.read.clone()),
            uploader: Uploader {
                backend,
                builder: WeightsBuilder::default(),
                weight_bytes: 0,
                in_flight: 0,
                rows: Vec::new(),
            },
            options,
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
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            // A tensor goes to the device before the next one takes memory. An empty one ends with the next byte.
            let left = bytes.len() as u64;
            let until_end = self.reader.until_tensor_end().map_or(left, |end| end.clamp(1.min(left), left));
            let (now, later) = bytes.split_at(until_end as usize);
            self.reader.push(now)?;
            self.uploader.upload(self.reader.take_tensors())?;
            if later.is_empty() {
                return Ok(());
            }
            bytes = later;
        }
    }

    /// The device, when it has been given so much that it should be [waited](Backend::settle) for before more is
    /// pushed: what it has not taken yet is held in memory.
    pub fn device_to_wait_for(&mut self) -> Option<B>
    where
        B: Clone,
    {
        if self.uploader.in_flight < MOST_IN_FLIGHT {
            return None;
        }
        self.uploader.in_flight = 0;
        Some(self.uploader.backend.clone())
    }

    /// # Errors
    /// As [`CheckpointReader::end_file`].
    pub fn end_file(&mut self) -> Result<()> {
        self.reader.end_file()
    }

    /// As [`CheckpointReader::skip_rest`].
    pub fn skip_rest(&mut self) {
        self.reader.skip_rest();
    }

    /// The engine, once all files were pushed.
    ///
    /// # Errors
    /// `corrupt_file` when something is missing or does not fit together. As [`Backend::settle`].
    pub async fn finish(mut self) -> Result<Engine<B>> {
        let (checkpoint, rest) = self.reader.finish()?;
        self.uploader.upload(rest)?;
        let Uploader { backend, builder, weight_bytes, .. } = self.uploader;
        let context_length = context_length(self.options.context_length, checkpoint.config.max_context);
        let text = Rc::new(TextTools::new(&checkpoint)?);
        let weights = builder.finish(&checkpoint.config)?;
        let transformer = Transformer::new(backend, checkpoint.config, weights)?;
        transformer.backend().settle().await?;
        transformer.backend().prepare(transformer.config(), self.options.kv_format).await?;
        let session = Session::new(&transformer, self.options.kv_format)?;
        Ok(Engine {
            transformer,
            text,
            special: checkpoint.special,
            defaults: checkpoint.defaults,
            context_length,
            kv_format: self.options.kv_format,
            weight_bytes,
            session,
            job: None,
        })
    }
}

impl<B: Backend> Uploader<B> {
    fn upload(&mut self, tensors: Vec<LoadedTensor>) -> Result<()> {
        for LoadedTensor { role, value, more_rows } in tensors {
            let value = match value {
                Tensor::Matrix(matrix) => {
                    self.weight_bytes += matrix.resident_bytes();
                    self.in_flight += matrix.resident_bytes();
                    self.rows.push(self.backend.upload_matrix(matrix)?);
                    if more_rows {
                        continue;
                    }
                    Tensor::Matrix(self.backend.stack(std::mem::take(&mut self.rows))?)
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
