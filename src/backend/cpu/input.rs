//! Activations as the ternary kernels want them: integers, in the kernels' own order.
//!
//! Both kinds of input are integers here, so one exact integer kernel serves both:
//! * [`LinearInput::Int8`] is the quantiser of W1.58A8 training: one plane of codes −127…127.
//! * [`LinearInput::Float`] is 30-bit fixed point, split into two planes of 15 bits. The error is
//!   2⁻³⁰ of the token's largest value, less than what `f32` sums lose, and sums are exact and hence
//!   the same on every device.

use super::tensor::CpuTensor;
use crate::model::LinearInput;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN, STREAMS};
use std::cell::OnceCell;

/// Bits of the lower plane of a fixed-point input.
pub const PLANE_BITS: u32 = 15;
/// Largest magnitude of a fixed-point input: both planes fit `i16` with a bit to spare.
const FIXED_MAX: f32 = (1u32 << 29) as f32;

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

    /// The float values, for dense linears.
    pub fn values(&self) -> &CpuTensor {
        &self.values
    }

    /// The integer form, for ternary linears; made on first use.
    pub fn codes(&self) -> &Codes {
        self.codes.get_or_init(|| Codes::new(&self.values, self.kind))
    }
}

/// Integer activations. Columns are padded with zeros to [`COL_ALIGN`] and permuted: for each 16-column
/// step, stream after stream, the eight even columns and then the eight odd ones.
#[derive(Debug)]
pub struct Codes {
    tokens: usize,
    padded: usize,
    planes: usize,
    data: Vec<i16>,
    steps: Vec<f32>,
}

impl Codes {
    pub fn new(values: &CpuTensor, kind: LinearInput) -> Self {
        let padded = values.width().next_multiple_of(COL_ALIGN);
        let planes = match kind {
            LinearInput::Int8 => 1,
            LinearInput::Float => 2,
        };
        let mut codes = Self {
            tokens: values.tokens(),
            padded,
            planes,
            data: vec![0; values.tokens() * planes * padded],
            steps: Vec::with_capacity(values.tokens()),
        };
        let mut integers = vec![0i32; padded];
        for token in 0..values.tokens() {
            let scale = match kind {
                LinearInput::Int8 => int8_codes(values.row(token), &mut integers),
                LinearInput::Float => fixed_point(values.row(token), &mut integers),
            };
            codes.steps.push(scale);
            let planes = &mut codes.data[token * planes * padded..(token + 1) * planes * padded];
            match kind {
                LinearInput::Int8 => permute(&integers, planes, |x| x as i16),
                LinearInput::Float => {
                    let (high, low) = planes.split_at_mut(padded);
                    permute(&integers, high, |x| (x >> PLANE_BITS) as i16);
                    permute(&integers, low, |x| (x & ((1 << PLANE_BITS) - 1)) as i16);
                }
            }
        }
        codes
    }

    pub fn tokens(&self) -> usize {
        self.tokens
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
        self.steps[token]
    }
}

/// The quantiser of BitNet b1.58: `round_half_even(x · s)`, `s = 127 / max(max|x|, 1e-5)`. Returns `s`.
fn int8_codes(x: &[f32], out: &mut [i32]) -> f32 {
    let scale = 127.0 / max_abs(x).max(1e-5);
    for (out, x) in out.iter_mut().zip(x) {
        *out = (x * scale).round_ties_even().clamp(-128.0, 127.0) as i32;
    }
    scale
}

/// Fixed point with 29 bits of magnitude. Returns the scale.
fn fixed_point(x: &[f32], out: &mut [i32]) -> f32 {
    let scale = FIXED_MAX / max_abs(x).max(f32::MIN_POSITIVE * FIXED_MAX);
    for (out, x) in out.iter_mut().zip(x) {
        *out = (x * scale).round_ties_even() as i32;
    }
    scale
}

fn max_abs(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |max, x| x.abs().max(max))
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
