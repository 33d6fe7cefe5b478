//! Activations as the ternary kernels want them: integers, in the kernels' own order.
//!
//! Both kinds of input are integers here, so one exact integer kernel serves both:
//! * [`LinearInput::Int8`] is the quantiser of W1.58A8 training: codes −127…127.
//! * [`LinearInput::Float`] is 24-bit fixed point, cut into signed digits that the kernel can multiply:
//!   three of 8 bits or two of 12. The error is 2⁻²⁴ of the token's largest value, as that of an `f32`;
//!   sums are exact and hence the same on every device.

use super::dot::{self, Chunk, Code, FLOAT_PLANES, PLANE_BITS};
use super::float;
use super::norm::Normalised;
use super::tensor::CpuTensor;
use crate::backend::Norm;
use crate::model::LinearInput;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN, STREAMS};
use bytemuck::Zeroable;
use std::cell::OnceCell;

/// Largest magnitude of a fixed-point input: the highest of three 8-bit digits stays below 128.
const FIXED_MAX: f32 = (127u32 << 16) as f32;

/// The prepared input of linears.
#[derive(Debug)]
pub struct CpuInput {
    values: CpuTensor,
    kind: LinearInput,
    codes: OnceCell<Codes>,
}

impl CpuInput {
    pub fn new(values: CpuTensor, kind: LinearInput) -> Self {
        Self { values, kind, codes: OnceCell::new() }
    }

    /// RMSNorm, then quantisation, in one go: int8 codes are rounded from the norm's `f64` values. A
    /// value within an `f32` rounding error of a tie thus falls as the exact mathematics has it, which
    /// keeps logits the same where another order of operations would flip a code.
    pub fn normalised(x: &CpuTensor, norm: &Norm<'_, Vec<f32>>, kind: LinearInput) -> Self {
        let mut values = CpuTensor::zeros(x.tokens(), x.width());
        let mut codes = (kind == LinearInput::Int8).then(|| Codes::new(x.tokens(), x.width(), kind));
        for token in 0..x.tokens() {
            let row = Normalised::new(x.row(token), norm.weight, norm.eps);
            values
                .row_mut(token)
                .iter_mut()
                .zip(row.scaled(1.0))
                .for_each(|(value, exact)| *value = exact as f32);
            if let Some(codes) = &mut codes {
                codes.push_normalised(&row);
            }
        }
        Self { values, kind, codes: codes.map(OnceCell::from).unwrap_or_default() }
    }

    /// The float values, for dense linears.
    pub fn values(&self) -> &CpuTensor {
        &self.values
    }

    /// The integer form, for ternary linears; made on first use.
    pub fn codes(&self) -> &Codes {
        self.codes.get_or_init(|| {
            let (tokens, width) = (self.values.tokens(), self.values.width());
            let mut codes = Codes::new(tokens, width, self.kind);
            for token in 0..tokens {
                codes.push_single(self.values.row(token));
            }
            codes
        })
    }
}

/// Integer activations: a token is one vector of chunks (int8) or several (fixed point), the planes, from
/// the highest digit to the lowest. Columns are padded with zeros to [`COL_ALIGN`]; chunks go in the
/// kernels' processing order, and the columns of a chunk as the kernel wants them.
#[derive(Debug)]
pub struct Codes {
    kind: LinearInput,
    padded: usize,
    planes: usize,
    data: Vec<Chunk>,
    scales: Vec<f32>,
    integers: Vec<i32>,
}

impl Codes {
    fn new(tokens: usize, width: usize, kind: LinearInput) -> Self {
        let padded = width.next_multiple_of(COL_ALIGN);
        let planes = match kind {
            LinearInput::Int8 => 1,
            LinearInput::Float => FLOAT_PLANES,
        };
        Self {
            kind,
            padded,
            planes,
            data: Vec::with_capacity(tokens * planes * padded / CHUNK_COLS),
            scales: Vec::with_capacity(tokens),
            integers: vec![0; padded],
        }
    }

    /// Appends a token's int8 codes, by the quantiser of BitNet b1.58 in double precision.
    fn push_normalised(&mut self, row: &Normalised<'_>) {
        let scale = 127.0 / row.largest().max(1e-5);
        self.integers.iter_mut().zip(row.scaled(scale)).for_each(|(integer, value)| *integer = round(value));
        self.store(scale as f32);
    }

    /// Appends a token in single precision, with the roundings that the quantiser's definition has.
    fn push_single(&mut self, row: &[f32]) {
        let max = float::largest(row);
        let scale = match self.kind {
            LinearInput::Int8 => 127.0 / max.max(1e-5),
            LinearInput::Float => FIXED_MAX / max.max(f32::MIN_POSITIVE * FIXED_MAX),
        };
        for (integer, value) in self.integers.iter_mut().zip(row) {
            *integer = (value * scale).round_ties_even() as i32;
        }
        self.store(scale);
    }

    fn store(&mut self, scale: f32) {
        self.scales.push(scale);
        let (start, chunks) = (self.data.len(), self.padded / CHUNK_COLS);
        self.data.resize(start + self.planes * chunks, Chunk::zeroed());
        for (plane, chunks) in self.data[start..].chunks_exact_mut(chunks).enumerate().rev() {
            if plane > 0 {
                arrange(&mut self.integers, chunks, take_digit);
            } else {
                arrange(&mut self.integers, chunks, |integer| *integer as Code);
            }
        }
    }

    pub fn tokens(&self) -> usize {
        self.scales.len()
    }

    pub fn padded_cols(&self) -> usize {
        self.padded
    }

    /// Vectors that a token has.
    pub fn planes(&self) -> usize {
        self.planes
    }

    /// Chunks of a vector.
    pub fn chunks(&self) -> usize {
        self.padded / CHUNK_COLS
    }

    /// All vectors, the planes of a token side by side.
    pub fn vectors(&self) -> &[Chunk] {
        &self.data
    }

    /// Vector `token · planes + plane`.
    pub fn vector(&self, index: usize) -> &[Chunk] {
        let chunks = self.padded / CHUNK_COLS;
        &self.data[index * chunks..(index + 1) * chunks]
    }

    /// The sum of a vector.
    pub fn total(&self, index: usize) -> i32 {
        let chunks = self.vector(index).iter();
        chunks.map(|chunk| chunk.0.iter().map(|x| i32::from(*x)).sum::<i32>()).sum()
    }

    /// `value = integer / scale(token)`
    pub fn scale(&self, token: usize) -> f32 {
        self.scales[token]
    }
}

/// The nearest integer, the even one of two, for magnitudes below 2³¹.
#[inline(always)]
fn round(value: f64) -> i32 {
    (value + float::ROUND).to_bits() as i32
}

/// Takes the lowest bits away as a signed digit.
fn take_digit(integer: &mut i32) -> Code {
    const UNUSED_BITS: u32 = i32::BITS - PLANE_BITS;
    let digit = (*integer << UNUSED_BITS) >> UNUSED_BITS;
    *integer = (*integer - digit) >> PLANE_BITS;
    digit as Code
}

/// Fills a vector's chunks in processing order.
fn arrange(integers: &mut [i32], chunks: &mut [Chunk], code: impl Fn(&mut i32) -> Code) {
    let per_stream = integers.len() / STREAMS;
    for (stream, columns) in integers.chunks_exact_mut(per_stream).enumerate() {
        let places = chunks[stream..].iter_mut().step_by(STREAMS);
        for (integers, chunk) in columns.as_chunks_mut::<CHUNK_COLS>().0.iter_mut().zip(places) {
            for (col, integer) in integers.iter_mut().enumerate() {
                chunk.0[dot::position(col)] = code(integer);
            }
        }
    }
}
