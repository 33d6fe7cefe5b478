//! Weights on the GPU. Ternary matrices keep the CPU's layout, several in a buffer, so that one dispatch can
//! read the matrices that share an input; dense ones are cut into blocks of rows that a binding can hold.

use super::context::Context;
use crate::Result;
use crate::error::invalid;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN, GROUP_ROWS, SLAB_ROWS};
use crate::quant::{
    DenseEncoding, DenseMatrix, Int4Matrix, Int8Matrix, KernelScales, Matrix, TernaryMatrix, int4,
};
use std::cell::RefCell;

/// Stands for "no scales here" in the kernels' parameters.
pub const NONE: u32 = u32::MAX;
/// Bytes of a `vec4<u32>`, in which offsets are counted.
const VECTOR: usize = 16;

/// `vec4`s of a run: the codes of eight rows in one stream (`RUN` in `shaders/ternary_linear.wgsl`). Matrices begin at
/// whole runs of theirs.
pub fn run_vectors(cols: usize) -> usize {
    cols.next_multiple_of(COL_ALIGN) / CHUNK_COLS / 2
}

/// A matrix on the GPU.
pub enum GpuMatrix {
    Ternary(GpuTernary),
    Dense(GpuDense),
}

pub struct GpuTernary {
    pub rows: usize,
    pub cols: usize,
    /// One part, unless the matrix is larger than a binding.
    pub parts: Vec<TernaryPart>,
    /// Columns that share a scale where rows have several.
    pub group: Option<usize>,
}

/// Whole slabs of a ternary matrix.
pub struct TernaryPart {
    pub buffer: wgpu::Buffer,
    pub first_row: usize,
    pub rows: usize,
    /// First `vec4` of codes.
    pub codes: u32,
    /// First `vec4` of row or group scales, or [`NONE`].
    pub scales: u32,
    /// The scale of the matrix, where it has one.
    pub scale: f32,
}

pub struct GpuDense {
    pub rows: usize,
    pub cols: usize,
    pub encoding: RowEncoding,
    /// `vec4`s of a row.
    pub vectors: usize,
    pub blocks: Vec<RowBlock>,
}

/// Consecutive rows of a dense matrix.
pub struct RowBlock {
    pub buffer: wgpu::Buffer,
    pub first_row: usize,
    pub rows: usize,
    /// First `vec4` of the rows' scales, or [`NONE`].
    pub scales: u32,
    /// First `vec4` of the groups' steps, or [`NONE`].
    pub steps: u32,
}

/// How the kernels find dense rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEncoding {
    F32,
    F16,
    BF16,
    Int8,
    Int4,
}

impl RowEncoding {
    /// Elements in a `vec4`.
    pub fn per_vector(self) -> usize {
        match self {
            RowEncoding::F32 => 4,
            RowEncoding::F16 | RowEncoding::BF16 => 8,
            RowEncoding::Int8 => 16,
            RowEncoding::Int4 => int4::GROUP,
        }
    }

    /// The file of `shaders/` that unpacks it.
    pub fn part(self) -> &'static str {
        match self {
            RowEncoding::F32 => "rows.f32",
            RowEncoding::F16 => "rows.f16",
            RowEncoding::BF16 => "rows.bf16",
            RowEncoding::Int8 => "rows.int8",
            RowEncoding::Int4 => "rows.int4",
        }
    }

    /// `vec4`s of a row of `cols` elements.
    fn vectors(self, cols: usize) -> usize {
        match self {
            RowEncoding::Int4 => cols.div_ceil(int4::BATCH * int4::GROUP) * int4::BATCH,
            _ => cols.div_ceil(self.per_vector()),
        }
    }

    /// Whether rows have scales, and whether each of their `vec4`s has a step.
    fn has_scales_and_steps(self) -> (bool, bool) {
        match self {
            RowEncoding::F32 | RowEncoding::F16 | RowEncoding::BF16 => (false, false),
            RowEncoding::Int8 => (true, false),
            RowEncoding::Int4 => (true, true),
        }
    }
}

impl GpuMatrix {
    pub fn upload(context: &Context, matrix: &Matrix) -> Result<Self> {
        let uploaded = match matrix {
            Matrix::Ternary(matrix) => GpuMatrix::Ternary(upload_ternary(context, matrix)),
            Matrix::Dense(matrix) => GpuMatrix::Dense(upload_dense(context, matrix)),
            Matrix::Int8(matrix) => GpuMatrix::Dense(upload_int8(context, matrix)),
            Matrix::Int4(matrix) => GpuMatrix::Dense(upload_int4(context, matrix)),
        };
        context.device.check()?;
        Ok(uploaded)
    }

    /// One matrix of the rows of several, in their order.
    ///
    /// # Errors
    /// `invalid_argument` for none, or for matrices that do not fit together.
    pub fn stack(parts: Vec<Self>) -> Result<Self> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().ok_or_else(|| invalid!("a matrix has no rows at all"))?;
        for part in parts {
            match (&mut whole, part) {
                (GpuMatrix::Dense(whole), GpuMatrix::Dense(part))
                    if whole.cols == part.cols && whole.encoding == part.encoding =>
                {
                    let below = whole.rows;
                    whole.rows += part.rows;
                    let moved = |block: RowBlock| RowBlock { first_row: below + block.first_row, ..block };
                    whole.blocks.extend(part.blocks.into_iter().map(moved));
                }
                _ => return Err(invalid!("the parts of a matrix do not fit together")),
            }
        }
        Ok(whole)
    }

    pub fn rows(&self) -> usize {
        match self {
            GpuMatrix::Ternary(matrix) => matrix.rows,
            GpuMatrix::Dense(matrix) => matrix.rows,
        }
    }

    pub fn cols(&self) -> usize {
        match self {
            GpuMatrix::Ternary(matrix) => matrix.cols,
            GpuMatrix::Dense(matrix) => matrix.cols,
        }
    }
}

/// The buffer that small matrices are put into one after another.
#[derive(Default)]
pub struct Store {
    open: RefCell<Option<Shelf>>,
}

struct Shelf {
    buffer: wgpu::Buffer,
    used: u64,
}

/// The first buffer's size; each next one is twice as large, up to what a binding holds.
const FIRST_SHELF: u64 = 4 << 20;
/// Uploads are handed over in pieces of about this size: each is copied on the way.
const UPLOAD_PIECE: usize = 16 << 20;

impl Store {
    /// Room for `bytes`: a buffer and the place in it, a multiple of `align`.
    fn place(&self, context: &Context, bytes: u64, align: u64) -> (wgpu::Buffer, u64) {
        let mut open = self.open.borrow_mut();
        let size = open.as_ref().map_or(FIRST_SHELF, |shelf| shelf.buffer.size());
        let shelf = match open.take() {
            Some(shelf) if shelf.used.next_multiple_of(align) + bytes <= shelf.buffer.size() => {
                open.insert(shelf)
            }
            full => {
                let grown = if full.is_some() { 2 * size } else { size };
                let size = grown.min(context.device.binding_bytes.min(MOST_SHELF)).max(bytes);
                open.insert(Shelf { buffer: context.storage(size, "weights"), used: 0 })
            }
        };
        let at = shelf.used.next_multiple_of(align);
        shelf.used = at + bytes;
        (shelf.buffer.clone(), at)
    }
}

/// Larger shared buffers only waste more of their ends.
const MOST_SHELF: u64 = 128 << 20;

fn upload_ternary(context: &Context, matrix: &TernaryMatrix) -> GpuTernary {
    let row_bytes = matrix.padded_cols() / 4;
    let run_bytes = (run_vectors(matrix.cols()) * VECTOR) as u64;
    let scales_of_row = match matrix.scales() {
        KernelScales::Tensor(_) => 0,
        KernelScales::Row(_) => 1,
        KernelScales::Group { size, .. } => matrix.cols().div_ceil(*size),
    };
    let row_cost = (row_bytes + 4 * scales_of_row) as u64;
    let slabs = (context.device.binding_bytes / row_cost.max(1) / SLAB_ROWS as u64).max(1);
    let part_rows = usize::try_from(slabs).unwrap_or(usize::MAX).saturating_mul(SLAB_ROWS);
    let parts = (0..matrix.rows())
        .step_by(part_rows)
        .map(|first_row| {
            let rows = part_rows.min(matrix.rows() - first_row);
            let padded_rows = rows.next_multiple_of(GROUP_ROWS);
            let codes = &matrix.bytes()[first_row * row_bytes..][..padded_rows * row_bytes];
            let mut row_scales: Vec<f32> = Vec::new();
            let mut scale = 1.0;
            match matrix.scales() {
                KernelScales::Tensor(value) => scale = *value,
                KernelScales::Row(values) => {
                    row_scales.extend_from_slice(&values[first_row..first_row + rows]);
                    row_scales.resize(padded_rows, 0.0);
                }
                KernelScales::Group { values, .. } => {
                    let groups = first_row / GROUP_ROWS * scales_of_row..;
                    let values = &values[groups][..padded_rows / GROUP_ROWS * scales_of_row];
                    row_scales.extend_from_slice(values.as_flattened());
                }
            }
            let scale_bytes: &[u8] = bytemuck::cast_slice(&row_scales);
            let bytes = (codes.len() + scale_bytes.len()) as u64;
            let (buffer, at) = context.store.place(context, bytes, run_bytes);
            write(context, &buffer, at, codes);
            write(context, &buffer, at + codes.len() as u64, scale_bytes);
            let first = at as usize / VECTOR;
            let scales = if row_scales.is_empty() { NONE } else { (first + codes.len() / VECTOR) as u32 };
            TernaryPart { buffer, first_row, rows, codes: first as u32, scales, scale }
        })
        .collect();
    let group = match matrix.scales() {
        KernelScales::Group { size, .. } => Some(size / CHUNK_COLS),
        KernelScales::Tensor(_) | KernelScales::Row(_) => None,
    };
    GpuTernary { rows: matrix.rows(), cols: matrix.cols(), parts, group }
}

fn upload_dense(context: &Context, matrix: &DenseMatrix) -> GpuDense {
    let encoding = match matrix.encoding() {
        DenseEncoding::F32 => RowEncoding::F32,
        DenseEncoding::BF16 => RowEncoding::BF16,
        DenseEncoding::F16
        | DenseEncoding::Q8_0
        | DenseEncoding::Q4_0
        | DenseEncoding::Q4_1
        | DenseEncoding::Q4K
        | DenseEncoding::Q6K => RowEncoding::F16,
    };
    let is_kept = !matches!(encoding, RowEncoding::F16) || matrix.encoding() == DenseEncoding::F16;
    let mut values = vec![0.0f32; matrix.cols()];
    upload_rows(context, matrix.rows(), matrix.cols(), encoding, |row, out| {
        if is_kept {
            out[..matrix.row_bytes()].copy_from_slice(matrix.row(row));
        } else {
            matrix.decode_row(row, &mut values);
            DenseEncoding::F16.encode(&values, out);
        }
        Extras::default()
    })
}

fn upload_int8(context: &Context, matrix: &Int8Matrix) -> GpuDense {
    upload_rows(context, matrix.rows(), matrix.cols(), RowEncoding::Int8, |row, out| {
        let bytes: &[u8] = bytemuck::cast_slice(matrix.row(row));
        let len = out.len().min(bytes.len());
        out[..len].copy_from_slice(&bytes[..len]);
        Extras { scale: matrix.scale(row), steps: Vec::new() }
    })
}

fn upload_int4(context: &Context, matrix: &Int4Matrix) -> GpuDense {
    upload_rows(context, matrix.rows(), matrix.cols(), RowEncoding::Int4, |row, out| {
        out.copy_from_slice(&matrix.row(row));
        Extras { scale: matrix.scale(row), steps: matrix.steps(row) }
    })
}

/// What a row has besides its elements, where its encoding has it.
#[derive(Default)]
struct Extras {
    scale: f32,
    steps: Vec<i8>,
}

/// Uploads rows that `fill` writes, each padded with zeros to whole `vec4`s.
fn upload_rows(
    context: &Context,
    rows: usize,
    cols: usize,
    encoding: RowEncoding,
    mut fill: impl FnMut(usize, &mut [u8]) -> Extras,
) -> GpuDense {
    let vectors = encoding.vectors(cols);
    let row_bytes = vectors * VECTOR;
    let (has_scales, has_steps) = encoding.has_scales_and_steps();
    let extra_bytes = size_of::<f32>() + if has_steps { vectors } else { 0 };
    let most = (context.device.binding_bytes as usize - 64) / (row_bytes + extra_bytes);
    let block_rows = (most / 16 * 16).max(1);
    let mut piece = Vec::with_capacity(UPLOAD_PIECE.min(rows * row_bytes) + row_bytes);
    let blocks = (0..rows)
        .step_by(block_rows)
        .map(|first_row| {
            let count = block_rows.min(rows - first_row);
            // Codes, then steps, then scales, each from a whole `vec4` on.
            let steps_at = (count * row_bytes) as u64;
            let step_bytes = if has_steps { (count * vectors).next_multiple_of(VECTOR) } else { 0 };
            let scales_at = steps_at + step_bytes as u64;
            let scale_bytes =
                if has_scales { (count * size_of::<f32>()).next_multiple_of(VECTOR) } else { 0 };
            let buffer = context.storage(scales_at + scale_bytes as u64, "dense weights");
            let (mut scales, mut steps): (Vec<f32>, Vec<i8>) = Default::default();
            let mut at = 0;
            for row in first_row..first_row + count {
                let start = piece.len();
                piece.resize(start + row_bytes, 0);
                let extras = fill(row, &mut piece[start..]);
                scales.push(extras.scale);
                steps.extend(extras.steps);
                if piece.len() >= UPLOAD_PIECE || row + 1 == first_row + count {
                    write(context, &buffer, at, &piece);
                    at += piece.len() as u64;
                    piece.clear();
                }
            }
            let vector_of = |is_there, at: u64| if is_there { (at / VECTOR as u64) as u32 } else { NONE };
            if has_steps {
                steps.resize(step_bytes, 0);
                write(context, &buffer, steps_at, bytemuck::cast_slice(&steps));
            }
            if has_scales {
                scales.resize(scale_bytes / size_of::<f32>(), 0.0);
                write(context, &buffer, scales_at, bytemuck::cast_slice(&scales));
            }
            let (scales, steps) = (vector_of(has_scales, scales_at), vector_of(has_steps, steps_at));
            RowBlock { buffer, first_row, rows: count, scales, steps }
        })
        .collect();
    GpuDense { rows, cols, encoding, vectors, blocks }
}

/// Writes in pieces, each handed over before the next is copied.
fn write(context: &Context, buffer: &wgpu::Buffer, at: u64, bytes: &[u8]) {
    for (index, piece) in bytes.chunks(UPLOAD_PIECE).enumerate() {
        context.device.queue.write_buffer(buffer, at + (index * UPLOAD_PIECE) as u64, piece);
        context.note_upload(piece.len());
    }
}
