//! The tensor directory of a weights file, in one form for all containers.

use std::borrow::Cow;

use safetensors::Dtype;

use super::gguf::GgufHeader;
use crate::Result;
use crate::error::{corrupt, unsupported};
use crate::quant::{DenseEncoding, TernaryBlocks, i2_s};

/// One tensor of a file, as its directory describes it.
#[derive(Debug, Clone)]
pub(super) struct TensorEntry {
    pub name: String,
    /// Rows first, row length last.
    pub shape: Vec<u64>,
    pub stored: Stored,
    /// From the start of the file.
    pub offset: u64,
    pub bytes: u64,
}

impl TensorEntry {
    /// Elements of the stored array, which are not always weights.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// How the bytes of a tensor are to be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Stored {
    Dense(DenseEncoding),
    Blocks(TernaryBlocks),
    I2S,
    /// A safetensors type whose meaning depends on the checkpoint's quantisation.
    Raw(Dtype),
    /// A type of ggml that Sterna does not read; the tensor's size is unknown.
    Unknown(u32),
}

impl Stored {
    /// The name that reports and messages use.
    pub fn label(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Stored::Dense(DenseEncoding::F32) => "F32",
            Stored::Dense(DenseEncoding::F16) => "F16",
            Stored::Dense(DenseEncoding::BF16) => "BF16",
            Stored::Dense(DenseEncoding::Q8_0) => "Q8_0",
            Stored::Dense(DenseEncoding::Q4_0) => "Q4_0",
            Stored::Dense(DenseEncoding::Q4_1) => "Q4_1",
            Stored::Dense(DenseEncoding::Q4K) => "Q4_K",
            Stored::Dense(DenseEncoding::Q6K) => "Q6_K",
            Stored::Blocks(TernaryBlocks::Tq1_0) => "TQ1_0",
            Stored::Blocks(TernaryBlocks::Tq2_0) => "TQ2_0",
            Stored::Blocks(TernaryBlocks::Q2_0G64) => "Q2_0 (blocks of 64)",
            Stored::Blocks(TernaryBlocks::Q2_0G128) => "Q2_0 (blocks of 128)",
            Stored::Blocks(TernaryBlocks::Ptq1_0) => "PTQ1_0",
            Stored::Blocks(TernaryBlocks::Q1_0) => "Q1_0",
            Stored::I2S => "I2_S",
            Stored::Raw(dtype) => return Cow::Owned(dtype.to_string()),
            Stored::Unknown(id) => return Cow::Owned(unknown_label(id)),
        })
    }

    fn of_ggml(id: u32, q2_0: TernaryBlocks) -> Self {
        match id {
            0 => Stored::Dense(DenseEncoding::F32),
            1 => Stored::Dense(DenseEncoding::F16),
            2 => Stored::Dense(DenseEncoding::Q4_0),
            3 => Stored::Dense(DenseEncoding::Q4_1),
            8 => Stored::Dense(DenseEncoding::Q8_0),
            12 => Stored::Dense(DenseEncoding::Q4K),
            14 => Stored::Dense(DenseEncoding::Q6K),
            30 => Stored::Dense(DenseEncoding::BF16),
            34 => Stored::Blocks(TernaryBlocks::Tq1_0),
            35 => Stored::Blocks(TernaryBlocks::Tq2_0),
            36 => Stored::I2S,
            41 => Stored::Blocks(TernaryBlocks::Q1_0),
            42 => Stored::Blocks(q2_0),
            142 => Stored::Blocks(TernaryBlocks::Q2_0G128),
            143 => Stored::Blocks(TernaryBlocks::Ptq1_0),
            other => Stored::Unknown(other),
        }
    }

    /// Bytes of a tensor of `elements` in rows of `row`; `None` where the shape does not fit the blocks.
    fn bytes(self, elements: u64, row: u64) -> Option<u64> {
        let (block, bytes) = match self {
            Stored::Dense(encoding) => encoding.block(),
            Stored::Blocks(encoding) => encoding.block(),
            Stored::I2S => {
                let blocks = elements.is_multiple_of(i2_s::BLOCK_CODES as u64);
                return blocks.then(|| elements / 4 + i2_s::TAIL_BYTES as u64);
            }
            Stored::Raw(_) | Stored::Unknown(_) => return Some(0),
        };
        row.is_multiple_of(block as u64).then(|| elements / block as u64 * bytes as u64)
    }
}

/// Names of common ggml types that Sterna does not read.
fn unknown_label(id: u32) -> String {
    let name = match id {
        6 => "Q5_0",
        7 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K",
        13 => "Q5_K",
        15 => "Q8_K",
        16..=23 | 29 => "an IQ type",
        24..=28 => "an integer or F64 type",
        37 => "I8_S",
        38 => "TL1",
        39 => "TL2 or MXFP4",
        40 => "NVFP4",
        _ => return format!("type {id}"),
    };
    format!("{name} (type {id})")
}

/// Where a checked directory puts everything.
pub(super) struct Layout {
    /// In the order of their data.
    pub entries: Vec<TensorEntry>,
    /// The end of the last tensor.
    pub end: u64,
    /// Where the file may end: after the last tensor, or after its padding.
    pub padded_end: u64,
}

/// More than any file that could be loaded; keeps sums of sizes far from overflow.
const MAX_DATA: u64 = 1 << 42;

/// Sizes and places of the tensors of a GGUF file. `Q2_0` blocks hold 64 or 128 weights depending on
/// who wrote the file: the size that agrees with all offsets is taken.
///
/// # Errors
/// `corrupt_file` where offsets, shapes and the file's `size` do not agree. A tensor of an unknown type
/// is not an error here; nothing after it can be checked.
pub(super) fn gguf_layout(header: &GgufHeader, size: Option<u64>) -> Result<Layout> {
    let ambiguous = header.tensors.iter().any(|tensor| tensor.type_id == 42);
    let upstream = lay_out(header, size, TernaryBlocks::Q2_0G64);
    if !ambiguous {
        return upstream;
    }
    let prism = lay_out(header, size, TernaryBlocks::Q2_0G128);
    match (upstream, prism) {
        (Ok(upstream), Ok(prism)) => {
            // Both fit when only the last tensor is `Q2_0`; the file's size decides.
            let fits = |layout: &Layout| size == Some(layout.end) || size == Some(layout.padded_end);
            Ok(if fits(&prism) && !fits(&upstream) { prism } else { upstream })
        }
        (Err(_), Ok(prism)) => Ok(prism),
        (upstream, Err(_)) => upstream,
    }
}

fn lay_out(header: &GgufHeader, size: Option<u64>, q2_0: TernaryBlocks) -> Result<Layout> {
    let data_start = header.end.next_multiple_of(header.alignment);
    let mut entries = Vec::with_capacity(header.tensors.len());
    let mut expected = Some(0u64);
    for tensor in &header.tensors {
        let name = &tensor.name;
        let elements = tensor.dims.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim));
        let Some(elements) = elements.filter(|elements| (1..MAX_DATA).contains(elements)) else {
            return Err(corrupt!("the tensor {name:?} has the impossible shape {:?}", tensor.dims));
        };
        let stored = Stored::of_ggml(tensor.type_id, q2_0);
        let bytes = stored.bytes(elements, tensor.dims[0]).ok_or_else(|| {
            corrupt!(
                "the tensor {name:?} of shape {:?} is not a whole number of {} blocks",
                tensor.dims,
                stored.label()
            )
        })?;
        if let Some(expected) = expected.filter(|expected| *expected != tensor.offset) {
            return Err(corrupt!(
                "the tensor {name:?} has offset {} where {expected} was expected: the file is damaged or \
                 was written by a fork whose {} blocks have another size",
                tensor.offset,
                stored.label()
            ));
        }
        if tensor.offset > MAX_DATA {
            return Err(corrupt!("the tensor {name:?} has the impossible offset {}", tensor.offset));
        }
        // Sizes of unknown types are unknown, so offsets after one cannot be checked.
        let known = !matches!(stored, Stored::Unknown(_));
        let end = tensor.offset + bytes;
        expected = expected.filter(|_| known).map(|_| end.next_multiple_of(header.alignment));
        let offset = data_start + tensor.offset;
        let shape = tensor.dims.iter().rev().copied().collect();
        entries.push(TensorEntry { name: name.clone(), shape, stored, offset, bytes });
    }
    let end = entries.iter().map(TensorEntry::end).max().unwrap_or(data_start);
    if size.is_some_and(|size| size < end) {
        return Err(cut_short(size.unwrap_or(0), end));
    }
    entries.sort_by_key(|entry| entry.offset);
    Ok(Layout { entries, end, padded_end: end.next_multiple_of(header.alignment) })
}

/// The error for a file that ends too early.
pub(super) fn cut_short(got: u64, wanted: u64) -> crate::Error {
    corrupt!(
        "the file is cut short: {got} of {wanted} bytes, {} are missing; download it again",
        wanted.saturating_sub(got)
    )
}

/// The error for a tensor whose encoding Sterna does not read.
pub(super) fn unreadable(entry: &TensorEntry) -> crate::Error {
    unsupported!(
        "the tensor {:?} is stored as {}, which Sterna does not read. It reads I2_S, TQ1_0, TQ2_0, Q2_0, \
         PQ2_0, PTQ1_0, Q1_0, F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K and Q6_K (GGUF); F32, F16, BF16, \
         packed U8 and 2-bit MLX (safetensors)",
        entry.name,
        entry.stored.label()
    )
}
