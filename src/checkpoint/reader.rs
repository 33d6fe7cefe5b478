//! The reader that callers feed: file after file, piece after piece.

use serde::Deserialize;

use super::headers::Weights;
use super::inspect::{self, Format, InspectReport};
use super::side_files::{SideFile, SideFiles, SideKind};
use super::sniff::{self, Container};
use super::walk::Walk;
use super::{Checkpoint, LoadedTensor, entry, gguf, safetensors, special};
use crate::error::{corrupt, invalid};
use crate::model::{LinearInput, ModelConfig};
use crate::quant::I2sLayout;
use crate::{Error, Result};

/// What the caller knows better than the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    pub activations: ActivationChoice,
    pub i2s_layout: I2sLayout,
    pub embedding: EmbeddingFormat,
    /// Hand dense matrices that keep more than this over in parts of about as many bytes.
    pub part_bytes: Option<usize>,
}

/// How a dense embedding and LM head are kept. Ternary ones stay ternary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingFormat {
    /// [`Self::Q8`] for a tensor of more than [`AUTO_Q8_BYTES`] in the file, else [`Self::File`].
    #[default]
    Auto,
    /// In the file's encoding.
    File,
    F16,
    /// Bytes with one scale a row.
    Q8,
    /// Half bytes with a scale for each 32.
    Q4,
}

/// The LM head is read for every token: from this size on that takes longer than all else that a small
/// model does, and halving it costs next to no accuracy.
pub const AUTO_Q8_BYTES: u64 = 64 << 20;

/// What ternary linears take as input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationChoice {
    /// As the model's family was trained.
    #[default]
    Auto,
    Int8,
    Float,
}

/// Reads a checkpoint from files that are pushed one after the other: side files first, then weights.
///
/// After an error in a file, every further call gives the same error. A model that is intact but not one that
/// Sterna runs becomes an error only after the push that completed its header, so that
/// [`Self::inspect`] can report on it.
pub struct CheckpointReader {
    options: ReadOptions,
    side: SideFiles,
    open: Option<OpenFile>,
    weights: Option<Weights>,
    problem: Option<Error>,
}

/// The file being pushed.
struct OpenFile {
    name: String,
    size: Option<u64>,
    received: u64,
    body: Body,
}

enum Body {
    Side(SideFile),
    /// The first bytes, until they tell what the file is.
    Start(Vec<u8>),
    Gguf(gguf::HeaderParser),
    Safetensors(safetensors::HeaderParser),
    /// Tensor data.
    Data(Walk),
    /// The rest of a file whose header showed a problem.
    Refused,
}

impl CheckpointReader {
    pub fn new(options: ReadOptions) -> Self {
        Self { options, side: SideFiles::default(), open: None, weights: None, problem: None }
    }

    /// Starts the file `name` (without a path) of `size` bytes, where that is known.
    ///
    /// # Errors
    /// `invalid_argument` when a file is open already.
    pub fn begin_file(&mut self, name: &str, size: Option<u64>) -> Result<()> {
        self.healthy()?;
        if let Some(open) = &self.open {
            return Err(invalid!("{name} was begun before {} was ended", open.name));
        }
        let body = match SideKind::of(name) {
            Some(kind) => Body::Side(SideFile::new(kind)),
            None => Body::Start(Vec::new()),
        };
        self.open = Some(OpenFile { name: name.to_owned(), size, received: 0, body });
        Ok(())
    }

    /// Takes the next bytes of the open file, any number of them.
    ///
    /// # Errors
    /// `corrupt_file` and `unsupported_format` saying what is wrong with the file, `out_of_memory`,
    /// `invalid_argument` when no file is open.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.healthy()?;
        let Some(mut open) = self.open.take() else {
            return Err(invalid!("bytes were pushed while no file was begun"));
        };
        open.received += bytes.len() as u64;
        let result = self.push_open(&mut open, bytes);
        self.open = Some(open);
        self.remember(result)
    }

    /// Bytes of the open file up to the end of the next tensor, where it is known: who pushes no more at once can
    /// take each tensor before the next one takes memory.
    pub fn until_tensor_end(&self) -> Option<u64> {
        match &self.open.as_ref()?.body {
            Body::Data(walk) => walk.until_tensor_end(),
            _ => None,
        }
    }

    /// Ends the open file.
    ///
    /// # Errors
    /// `corrupt_file` when the file is not complete, saying how much is missing.
    pub fn end_file(&mut self) -> Result<()> {
        self.healthy()?;
        let Some(open) = self.open.take() else {
            return Err(invalid!("a file was ended while none was begun"));
        };
        let result = self.end_open(open);
        self.remember(result)
    }

    /// Leaves out the rest of the open file, whose header was read, so that [`Self::inspect`] can report on
    /// several files without their data. The load cannot be finished afterwards: tensors are missing.
    pub fn skip_rest(&mut self) {
        self.open = None;
    }

    /// Whether the header of a weights file has been read, so that [`Self::inspect`] has an answer.
    pub fn header_ready(&self) -> bool {
        self.weights.is_some()
            && self.open.as_ref().is_none_or(|open| matches!(open.body, Body::Data(_) | Body::Refused))
    }

    /// The weights files that an index listed, in order; empty without an index.
    pub fn shards(&self) -> Vec<String> {
        self.side.index.as_ref().map(|index| index.shards.clone()).unwrap_or_default()
    }

    /// Tensors read, and tensors to read: of the files whose headers were read, or of all shards where an
    /// index was.
    pub fn progress(&self) -> (usize, usize) {
        let Some(weights) = &self.weights else { return (0, 0) };
        let indexed = self.side.index.as_ref().map_or(0, |index| index.tensors);
        (weights.done, weights.listed.max(indexed))
    }

    /// Bytes that the tensors of the headers read so far will keep: an upper bound for float files whose
    /// values turn out to be ternary.
    pub fn resident_bytes(&self) -> u64 {
        self.weights.as_ref().map_or(0, |weights| weights.resident_bytes)
    }

    /// The model's configuration, once a header has been read. `linear_input` may still change.
    pub fn config(&self) -> Option<&ModelConfig> {
        self.weights.as_ref()?.spec.as_ref().ok().map(|spec| &spec.config)
    }

    /// What the headers read so far say.
    ///
    /// # Errors
    /// `invalid_argument` before a header has been read.
    pub fn inspect(&self) -> Result<InspectReport> {
        let Some(weights) = &self.weights else {
            self.healthy()?;
            return Err(invalid!("there is nothing to report yet: push a weights file first"));
        };
        let config_entries = self.side.config.as_object().into_iter().flatten();
        let shown_config = config_entries.map(inspect::shown_json);
        Ok(InspectReport {
            format: weights.format,
            architecture: weights.architecture.clone(),
            supported: self.problem.is_none(),
            problem: self.problem.as_ref().map(Error::to_string),
            config: self.config().map(|config| self.with_options(config.clone())),
            parameters: weights.tensors.iter().map(|(_, parameters)| parameters).sum(),
            encodings: inspect::encodings(&weights.tensors),
            file_bytes: weights.file_bytes,
            metadata: weights.shown_metadata.iter().cloned().chain(shown_config).collect(),
            tensors: weights.tensors.iter().map(|(tensor, _)| tensor.clone()).collect(),
        })
    }

    /// The tensors finished since the last call.
    pub fn take_tensors(&mut self) -> Vec<LoadedTensor> {
        self.weights.as_mut().map(|weights| weights.assembly.take_finished()).unwrap_or_default()
    }

    /// Ends the load: the checkpoint and the tensors that were not taken yet.
    ///
    /// # Errors
    /// `corrupt_file` when tensors are missing.
    pub fn finish(mut self) -> Result<(Checkpoint, Vec<LoadedTensor>)> {
        self.healthy()?;
        if let Some(open) = &self.open {
            return Err(invalid!("the load was finished before {} was ended", open.name));
        }
        let Some(mut weights) = self.weights.take() else {
            return Err(corrupt!(
                "no model weights were given: a model needs a .gguf file, or .safetensors files with their \
                 config.json"
            ));
        };
        let config = self.with_options(weights.final_config()?);
        let text = special::collect(self.side, weights.metadata, config.vocab_size);
        let checkpoint = Checkpoint {
            config,
            tokenizer: text.tokenizer,
            template: text.template,
            special: text.special,
            defaults: text.defaults,
        };
        Ok((checkpoint, weights.assembly.take_finished()))
    }

    fn healthy(&self) -> Result<()> {
        self.problem.clone().map_or(Ok(()), Err)
    }

    fn remember(&mut self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            self.problem = Some(error.clone());
        }
        result
    }

    fn with_options(&self, mut config: ModelConfig) -> ModelConfig {
        match self.options.activations {
            ActivationChoice::Auto => {}
            ActivationChoice::Int8 => config.linear_input = LinearInput::Int8,
            ActivationChoice::Float => config.linear_input = LinearInput::Float,
        }
        config
    }

    fn push_open(&mut self, open: &mut OpenFile, mut bytes: &[u8]) -> Result<()> {
        if let Body::Start(start) = &mut open.body {
            let taken = (sniff::BYTES - start.len()).min(bytes.len());
            start.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if start.len() < sniff::BYTES {
                return Ok(());
            }
            self.identify(open)?;
        }
        self.push_body(open, bytes)
    }

    /// Decides from the first bytes what the open file is, and gives it these bytes.
    fn identify(&mut self, open: &mut OpenFile) -> Result<()> {
        let Body::Start(start) = std::mem::replace(&mut open.body, Body::Refused) else {
            return Ok(());
        };
        let container = sniff::container(&open.name, &start)?;
        let format = match container {
            Container::Gguf => Format::Gguf,
            Container::Safetensors => Format::Safetensors,
        };
        match &self.weights {
            None => {}
            Some(weights) if weights.format == Format::Safetensors && format == Format::Safetensors => {}
            Some(weights) if weights.lacks_parts() && format == Format::Gguf => {}
            Some(_) => {
                return Err(invalid!(
                    "{} is a second model: load one GGUF file, or the files of one split or sharded model",
                    open.name
                ));
            }
        }
        open.body = match container {
            Container::Gguf => Body::Gguf(gguf::HeaderParser::new(open.size)),
            Container::Safetensors => Body::Safetensors(safetensors::HeaderParser::new(open.size)),
        };
        self.push_body(open, &start)
    }

    fn push_body(&mut self, open: &mut OpenFile, bytes: &[u8]) -> Result<()> {
        let (walk, used) = match &mut open.body {
            Body::Side(file) => return file.push(&open.name, bytes),
            Body::Start(_) | Body::Refused => return Ok(()),
            Body::Data(walk) => return self.push_data(walk, bytes),
            Body::Gguf(parser) => match parser.push(bytes)? {
                None => return Ok(()),
                Some((header, used)) => (self.gguf_header(header, open.size)?, used),
            },
            Body::Safetensors(parser) => match parser.push(bytes)? {
                None => return Ok(()),
                Some((header, used)) => (self.safetensors_header(header, open)?, used),
            },
        };
        let Some(walk) = walk else {
            open.body = Body::Refused;
            return Ok(());
        };
        open.body = Body::Data(walk);
        self.push_body(open, &bytes[used..])
    }

    fn push_data(&mut self, walk: &mut Walk, bytes: &[u8]) -> Result<()> {
        let Some(weights) = &mut self.weights else {
            return Ok(());
        };
        weights.done += walk.push(bytes, &mut weights.assembly)?;
        Ok(())
    }

    /// A model that cannot be run becomes the reader's problem; the rest of its file is skipped.
    fn walk(&mut self, walk: Result<Walk>) -> Option<Walk> {
        match walk {
            Ok(walk) => Some(walk),
            Err(error) => {
                self.problem = Some(error);
                None
            }
        }
    }

    fn gguf_header(&mut self, header: gguf::GgufHeader, size: Option<u64>) -> Result<Option<Walk>> {
        let walk = match &mut self.weights {
            Some(weights) => weights.add_gguf(header, size),
            None => {
                let (weights, walk) = Weights::from_gguf(header, size, &self.options)?;
                self.weights = Some(weights);
                walk
            }
        };
        Ok(self.walk(walk))
    }

    fn safetensors_header(
        &mut self,
        header: safetensors::SafetensorsHeader,
        open: &OpenFile,
    ) -> Result<Option<Walk>> {
        let end = header.data_end();
        if let Some(size) = open.size.filter(|size| *size != end) {
            return Err(match size < end {
                true => entry::cut_short(size, end),
                false => corrupt!("{} has {} bytes more than its header lists", open.name, size - end),
            });
        }
        let whole = self.side.index.is_none() && !open.name.contains("-of-");
        let weights =
            self.weights.get_or_insert_with(|| Weights::of_config(&self.side.config, &self.options));
        let walk = weights.add_safetensors(header, whole);
        Ok(self.walk(walk))
    }

    fn end_open(&mut self, mut open: OpenFile) -> Result<()> {
        if matches!(open.body, Body::Start(_)) {
            self.identify(&mut open)?;
            self.healthy()?;
        }
        let short = |what: &str| match open.size {
            Some(size) => entry::cut_short(open.received, size),
            None => corrupt!(
                "{} is cut short: it ends after {} bytes, inside {what}; download it again",
                open.name,
                open.received
            ),
        };
        match open.body {
            Body::Side(file) => file.finish(&open.name, &mut self.side),
            Body::Gguf(_) | Body::Safetensors(_) => Err(short("its header")),
            Body::Data(walk) => walk.finish(open.received),
            Body::Start(_) | Body::Refused => Ok(()),
        }
    }
}
