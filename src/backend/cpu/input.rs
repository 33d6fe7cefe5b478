//! Activations as the ternary kernels want them: integers, in the kernels' own order.
//!
//! Both kinds of input are integers here, so one exact integer kernel serves both:
//! * [`LinearInput::Int8`] is the quantiser of W1.58A8 training: one plane of codes −127…127.
//! * [`LinearInput::Float`] is 30-bit fixed point, split into two planes of 15 bits. The error is
//!   2⁻³⁰ of the token's largest value, less than what `f32` sums lose, and sums are exact and hence
//!   the same on every device.

use super::norm::normalised;
use super::tensor::CpuTensor;
use crate::backend::Norm;
use crate::model::LinearInput;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN, STREAMS};
use std::cell::OnceCell;

/// Bits of the lower plane of a fixed-point input.
pub const PLANE_BITS: u32 = 15;
/// Largest magnitude of a fixed-point input: both planes fit `i16` with a bit to spare.
const FIXED_MAX: f64 = (1u32 << 29) as f64;

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
        let mut row = vec![0.0f64; x.width()];
        for token in 0..x.tokens() {
            normalised(x.row(token), norm.weight, norm.eps, &mut row);
            for (value, exact) in values.row_mut(token).iter_mut().zip(&row) {
                *value = *exact as f32;
            }
            if let Some(codes) = &mut codes {
                codes.push(&row);
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

/// Integer activations. Columns are padded with zeros to [`COL_ALIGN`] and permuted: for each 16-column
/// step, stream after stream, the eight even columns and then the eight odd ones.
#[derive(Debug)]
pub struct Codes {
    kind: LinearInput,
    padded: usize,
    planes: usize,
    data: Vec<i16>,
    scales: Vec<f32>,
    integers: Vec<i32>,
}

impl Codes {
    fn new(tokens: usize, width: usize, kind: LinearInput) -> Self {
        let padded = width.next_multiple_of(COL_ALIGN);
        let planes = match kind {
            LinearInput::Int8 => 1,
            LinearInput::Float => 2,
        };
        Self {
            kind,
            padded,
            planes,
            data: Vec::with_capacity(tokens * planes * padded),
            scales: Vec::with_capacity(tokens),
            integers: vec![0; padded],
        }
    }

    /// Appends a token in double precision.
    fn push(&mut self, row: &[f64]) {
        let max = row.iter().fold(0.0f64, |max, x| if x.abs() > max { x.abs() } else { max });
        let scale = match self.kind {
            // The quantiser of BitNet b1.58.
            LinearInput::Int8 => 127.0 / max.max(1e-5),
            LinearInput::Float => FIXED_MAX / max.max(f64::from(f32::MIN_POSITIVE)),
        };
        for (integer, value) in self.integers.iter_mut().zip(row) {
            *integer = (value * scale).round_ties_even() as i32;
        }
        self.store(scale as f32);
    }

    /// Appends a token in single precision, with the roundings that the quantiser's definition has.
    fn push_single(&mut self, row: &[f32]) {
        let max = row.iter().fold(0.0f32, |max, x| if x.abs() > max { x.abs() } else { max });
        let scale = match self.kind {
            LinearInput::Int8 => 127.0 / max.max(1e-5),
            LinearInput::Float => FIXED_MAX as f32 / max.max(f32::MIN_POSITIVE * FIXED_MAX as f32),
        };
        for (integer, value) in self.integers.iter_mut().zip(row) {
            *integer = (value * scale).round_ties_even() as i32;
        }
        self.store(scale);
    }

    fn store(&mut self, scale: f32) {
        self.scales.push(scale);
        let start = self.data.len();
        self.data.resize(start + self.planes * self.padded, 0);
        let planes = &mut self.data[start..];
        match self.kind {
            LinearInput::Int8 => permute(&self.integers, planes, |x| x as i16),
            LinearInput::Float => {
                let (high, low) = planes.split_at_mut(self.padded);
                permute(&self.integers, high, |x| (x >> PLANE_BITS) as i16);
                permute(&self.integers, low, |x| (x & ((1 << PLANE_BITS) - 1)) as i16);
            }
        }
    }

    pub fn tokens(&self) -> usize {
        self.scales.len()
    }

    pub fn padded_cols(&self) -> usize {
        self.padded
    }

    /// One plane (int8) or two (fixed point, high then low).
    pub fn planes(&self) -> usize {
        self.planes
    }

    pub fn plane(&self, token: usize, plane: usize) -> &[i16] {
        let start = (token * self.planes + plane) * self.padded;
        &self.data[start..start + self.padded]
    }

    /// `value = integer / scale(token)`
    pub fn scale(&self, token: usize) -> f32 {
        self.scales[token]
    }
}

fn permute(integers: &[i32], out: &mut [i16], part: impl Fn(i32) -> i16) {
    let per_stream = integers.len() / STREAMS;
    for (stream, columns) in integers.chunks_exact(per_stream).enumerate() {
        for (step, chunk) in columns.as_chunks::<CHUNK_COLS>().0.iter().enumerate() {
            let start = (step * STREAMS + stream) * CHUNK_COLS;
            for (index, pair) in chunk.as_chunks::<2>().0.iter().enumerate() {
                out[start + index] = part(pair[0]);
                out[start + CHUNK_COLS / 2 + index] = part(pair[1]);
            }
        }
    }
}
