//! Decides, from a file's directory and the model's spec, what becomes of each tensor before the first
//! byte of data is read: all shapes are checked here, and unknown tensors refused.

use std::collections::BTreeSet;

use safetensors::Dtype;

use super::entry::{self, Stored, TensorEntry};
use super::names::{self, Naming, Part};
use super::reader::{AUTO_Q8_BYTES, EmbeddingFormat, ReadOptions};
use super::spec::{ModelSpec, Quantization, Tied};
use crate::Result;
use crate::error::{corrupt, unsupported};
use crate::model::{LayerRole, ModelConfig, Role};
use crate::quant::ternary::{COL_ALIGN, GROUP_ROWS};
use crate::quant::{DenseEncoding, I2sLayout, TernaryBlocks, hf_packed, int4, int8, mlx2};

/// One tensor to read.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub name: String,
    pub offset: u64,
    pub bytes: u64,
    pub role: Role,
    pub part: Part,
    pub form: Form,
    /// What else the role needs besides this weight.
    pub recipe: Recipe,
    /// Whether the next job has the matrix's next rows.
    pub more_rows: bool,
}

/// What the bytes of a tensor are turned into.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    Vector { len: usize, encoding: DenseEncoding },
    Matrix { rows: usize, cols: usize, order: RowOrder, coding: Coding },
}

/// How the bytes of a matrix are to be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Coding {
    Dense(DenseEncoding),
    /// Rows to be kept as halves, or as bytes or half bytes with scales.
    ToF16(DenseEncoding),
    ToInt8(DenseEncoding),
    ToInt4(DenseEncoding),
    /// Floats that may turn out to be ternary.
    Floats(DenseEncoding),
    /// Float master weights, to be quantised.
    Master(DenseEncoding),
    Blocks(TernaryBlocks),
    I2S(I2sLayout),
    Packed,
    Mlx,
}

/// Which row of the matrix a row of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOrder {
    AsStored,
    /// Within each head, row `2i + s` of the file is row `i + s·head_dim/2`.
    InterleavedPairs {
        head_dim: usize,
    },
}

impl RowOrder {
    pub fn destination(self, row: usize) -> usize {
        match self {
            RowOrder::AsStored => row,
            RowOrder::InterleavedPairs { head_dim } => {
                let (head, within) = (row / head_dim, row % head_dim);
                head * head_dim + within / 2 + within % 2 * (head_dim / 2)
            }
        }
    }
}

/// How the parts of a role make its matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Recipe {
    /// The weight alone.
    Plain,
    /// Weight times a stored scale.
    Multiply,
    /// Weight divided by a stored scale.
    Divide,
    /// MLX codes with scales and biases for every `group` columns.
    Grouped { group: usize },
}

/// What a file contributes.
pub(super) struct Plan {
    /// In the order of their data.
    pub jobs: Vec<Job>,
    /// Tensors that are not needed.
    pub ignored: usize,
}

impl Plan {
    /// The roles whose weight the file has.
    pub fn weights(&self) -> BTreeSet<Role> {
        let weights = self.jobs.iter().filter(|job| job.part == Part::Weight);
        weights.map(|job| job.role).collect()
    }
}

/// What a plan is made from.
pub(super) struct Planner<'a> {
    pub spec: &'a ModelSpec,
    pub naming: Naming,
    pub options: &'a ReadOptions,
}

impl Planner<'_> {
    /// Plans all tensors of a file.
    ///
    /// # Errors
    /// `unsupported_format` for tensors of other model kinds and unreadable encodings, `corrupt_file` for
    /// shapes that contradict the config.
    pub fn plan(&self, entries: &[TensorEntry]) -> Result<Plan> {
        let scaled: BTreeSet<Role> = entries
            .iter()
            .filter_map(|entry| self.naming.parse(&entry.name))
            .filter_map(|(role, part)| (part == Part::Scale).then_some(role))
            .collect();
        let mut plan = Plan { jobs: Vec::with_capacity(entries.len()), ignored: 0 };
        for entry in entries {
            match self.job(entry, &scaled)? {
                Some(job) => plan.jobs.push(job),
                None => plan.ignored += 1,
            }
        }
        Ok(plan)
    }

    /// The roles without which the model cannot run.
    pub fn required(&self) -> BTreeSet<Role> {
        let config = &self.spec.config;
        let layers = (0..config.num_layers)
            .flat_map(|index| layer_roles(config).into_iter().map(move |role| Role::Layer(index, role)));
        let mut required: BTreeSet<Role> = layers.collect();
        required.extend([Role::Embedding, Role::OutputNorm]);
        if self.spec.tied == Tied::No {
            required.insert(Role::Head);
        }
        required
    }

    /// The first role of [`Self::required`] that is not among `found`, as an error.
    pub fn check_complete(&self, found: &BTreeSet<Role>) -> Result<()> {
        match self.required().difference(found).next() {
            None => Ok(()),
            Some(role) => Err(corrupt!(
                "the checkpoint has no tensor {:?}: the download is incomplete, a shard is missing, or the \
                 config belongs to another model",
                self.naming.name(*role)
            )),
        }
    }

    fn job(&self, entry: &TensorEntry, scaled: &BTreeSet<Role>) -> Result<Option<Job>> {
        if names::is_redundant(&entry.name) {
            return Ok(None);
        }
        let known =
            self.naming.parse(&entry.name).filter(|(role, part)| self.expects(*role, *part, &entry.name));
        let Some((role, part)) = known else {
            return Err(unsupported!(
                "the checkpoint has a tensor {:?} that the {} architecture, as Sterna runs it, does not use",
                entry.name,
                self.spec.config.architecture
            ));
        };
        if let Role::Layer(index, _) = role
            && index >= self.spec.config.num_layers
        {
            return Err(corrupt!(
                "the checkpoint has a tensor {:?} but its config has only {} layers",
                entry.name,
                self.spec.config.num_layers
            ));
        }
        if role == Role::Head && self.spec.tied == Tied::Yes {
            return Ok(None);
        }
        let recipe = self.recipe(entry, role, scaled);
        let form = match part {
            Part::Weight if names::is_matrix(role) => self.matrix(entry, role)?,
            _ => self.vector(entry, role, part)?,
        };
        let (offset, bytes) = (entry.offset, entry.bytes);
        Ok(Some(Job { name: entry.name.clone(), offset, bytes, role, part, form, recipe, more_rows: false }))
    }

    /// Whether the family has such a tensor.
    fn expects(&self, role: Role, part: Part, name: &str) -> bool {
        let config = &self.spec.config;
        let has_role = match role {
            Role::Layer(_, role) => layer_roles(config).contains(&role),
            _ => true,
        };
        let has_part = match (part, self.naming) {
            (Part::Weight, _) => true,
            (Part::Scale, Naming::Gguf) => names::is_matrix(role),
            (Part::Scale, Naming::HuggingFace) => {
                matches!(self.spec.quantization, Quantization::Packed { .. })
                    && self.spec.quantization.covers(role, name)
            }
            (Part::GroupScales | Part::GroupBiases, _) => {
                matches!(self.spec.quantization, Quantization::Mlx { .. }) && names::is_matrix(role)
            }
        };
        has_role && has_part
    }

    fn recipe(&self, entry: &TensorEntry, role: Role, scaled: &BTreeSet<Role>) -> Recipe {
        let quantization = &self.spec.quantization;
        match quantization {
            Quantization::Packed { divides, .. } if quantization.covers(role, &entry.name) => match divides {
                true => Recipe::Divide,
                false => Recipe::Multiply,
            },
            Quantization::Mlx { group } if entry.stored == Stored::Raw(Dtype::U32) => {
                Recipe::Grouped { group: *group }
            }
            _ if self.naming == Naming::Gguf && scaled.contains(&role) => Recipe::Multiply,
            _ => Recipe::Plain,
        }
    }

    fn matrix(&self, entry: &TensorEntry, role: Role) -> Result<Form> {
        let [rows, cols] = matrix_shape(role, &self.spec.config);
        let coding = self.coding(entry, role)?;
        let stored = match (coding, rows.is_multiple_of(hf_packed::ROWS_PER_BYTE)) {
            (Coding::Packed, true) => [rows / hf_packed::ROWS_PER_BYTE, cols],
            (Coding::Mlx, _) if cols.is_multiple_of(mlx2::CODES_PER_WORD) => {
                [rows, cols / mlx2::CODES_PER_WORD]
            }
            (Coding::Packed, false) | (Coding::Mlx, _) => {
                return Err(corrupt!(
                    "the tensor {:?} of {rows}x{cols} weights cannot be packed as {}",
                    entry.name,
                    entry.stored.label()
                ));
            }
            _ => [rows, cols],
        };
        check_shape(entry, &stored)?;
        let order = match role {
            Role::Layer(_, LayerRole::Query | LayerRole::Key) if self.spec.interleaved_rope => {
                RowOrder::InterleavedPairs { head_dim: self.spec.config.head_dim }
            }
            _ => RowOrder::AsStored,
        };
        Ok(Form::Matrix { rows, cols, order, coding })
    }

    fn coding(&self, entry: &TensorEntry, role: Role) -> Result<Coding> {
        let covered = self.spec.quantization.covers(role, &entry.name);
        Ok(match (entry.stored, &self.spec.quantization) {
            (Stored::Blocks(encoding), _) => Coding::Blocks(encoding),
            (Stored::I2S, _) => Coding::I2S(self.options.i2s_layout),
            (Stored::Raw(Dtype::U8), Quantization::Packed { .. }) if covered => Coding::Packed,
            (Stored::Raw(Dtype::U32), Quantization::Mlx { .. }) => Coding::Mlx,
            (Stored::Dense(encoding), Quantization::Master { .. }) if covered => Coding::Master(encoding),
            (Stored::Dense(encoding), _) => {
                let may_be_ternary = names::is_layer_linear(role) || self.spec.ternary_vocabulary;
                match encoding.block().0 {
                    1 if may_be_ternary => Coding::Floats(encoding),
                    _ if matches!(role, Role::Embedding | Role::Head) => self.vocabulary(entry, encoding),
                    _ => Coding::Dense(encoding),
                }
            }
            (Stored::Raw(_) | Stored::Unknown(_), _) => return Err(entry::unreadable(entry)),
        })
    }

    /// The coding of a dense embedding or LM head.
    fn vocabulary(&self, entry: &TensorEntry, encoding: DenseEncoding) -> Coding {
        match self.options.embedding {
            EmbeddingFormat::Auto if entry.bytes > AUTO_Q8_BYTES => Coding::ToInt8(encoding),
            EmbeddingFormat::Auto | EmbeddingFormat::File => Coding::Dense(encoding),
            EmbeddingFormat::F16 if encoding == DenseEncoding::F16 => Coding::Dense(encoding),
            EmbeddingFormat::F16 => Coding::ToF16(encoding),
            EmbeddingFormat::Q8 => Coding::ToInt8(encoding),
            EmbeddingFormat::Q4 => Coding::ToInt4(encoding),
        }
    }

    fn vector(&self, entry: &TensorEntry, role: Role, part: Part) -> Result<Form> {
        let Stored::Dense(encoding) = entry.stored else {
            return Err(entry::unreadable(entry));
        };
        let len = match (part, &self.spec.quantization) {
            (Part::Scale, _) => {
                if entry.elements() != 1 {
                    return Err(unsupported!(
                        "the scale {:?} has the shape {:?}: Sterna reads one scale a tensor here",
                        entry.name,
                        entry.shape
                    ));
                }
                1
            }
            (Part::GroupScales | Part::GroupBiases, Quantization::Mlx { group }) => {
                let [rows, cols] = matrix_shape(role, &self.spec.config);
                if !cols.is_multiple_of(*group) {
                    return Err(corrupt!(
                        "the tensor {:?} scales groups of {group} columns, which do not divide {cols}",
                        entry.name
                    ));
                }
                check_shape(entry, &[rows, cols / group])?;
                rows.saturating_mul(cols / group)
            }
            _ => {
                let shape = role.shape(&self.spec.config).unwrap_or_default();
                check_shape(entry, &shape)?;
                shape[0]
            }
        };
        if encoding.block().0 != 1 {
            return Err(entry::unreadable(entry));
        }
        Ok(Form::Vector { len, encoding })
    }
}

impl Form {
    /// Bytes that the finished tensor keeps, where floats stay floats.
    pub fn resident_bytes(&self) -> u64 {
        match *self {
            Form::Vector { len, .. } => 4 * len as u64,
            Form::Matrix { rows, cols, coding, .. } => match coding {
                Coding::Dense(encoding) | Coding::Floats(encoding) => {
                    rows as u64 * encoding.row_bytes(cols).unwrap_or(0) as u64
                }
                Coding::ToF16(_) => 2 * rows as u64 * cols as u64,
                Coding::ToInt8(_) => int8::resident_bytes(rows as u64, cols),
                Coding::ToInt4(_) => int4::resident_bytes(rows as u64, cols),
                Coding::Blocks(encoding) => {
                    ternary_bytes(rows, cols) + 4 * rows as u64 * cols.div_ceil(encoding.block().0) as u64
                }
                Coding::Master(_) | Coding::I2S(_) | Coding::Packed | Coding::Mlx => {
                    ternary_bytes(rows, cols) + 4
                }
            },
        }
    }
}

fn ternary_bytes(rows: usize, cols: usize) -> u64 {
    rows.next_multiple_of(GROUP_ROWS) as u64 * cols.next_multiple_of(COL_ALIGN) as u64 / 4
}

/// The roles that every layer of the family fills.
fn layer_roles(config: &ModelConfig) -> Vec<LayerRole> {
    use LayerRole::*;
    let mut roles = vec![AttnNorm, Query, Key, Value, AttnOutput, FfnNorm, Gate, Up, Down];
    if config.sub_norms {
        roles.extend([AttnSubNorm, FfnSubNorm]);
    }
    if config.qk_norm {
        roles.extend([QueryNorm, KeyNorm]);
    }
    roles
}

fn matrix_shape(role: Role, config: &ModelConfig) -> [usize; 2] {
    match role.shape(config).as_deref() {
        Some(&[rows, cols]) => [rows, cols],
        _ => [0, 0],
    }
}

fn check_shape(entry: &TensorEntry, wanted: &[usize]) -> Result<()> {
    let same = entry.shape.len() == wanted.len()
        && entry.shape.iter().zip(wanted).all(|(got, wanted)| *got == *wanted as u64);
    match same {
        true => Ok(()),
        false => Err(corrupt!(
            "the tensor {:?} has the shape {:?} where the config asks for {wanted:?}: the file is damaged or \
             the config belongs to another model",
            entry.name,
            entry.shape
        )),
    }
}
