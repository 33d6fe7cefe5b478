//! Activations as the ternary kernels want them: integers, in the kernels' own order.
//!
//! Both kinds of input are integers here, so one exact integer kernel serves both:
//! * [`LinearInput::Int8`] is the quantiser of W1.58A8 training: codes −127…127.
//! * [`LinearInput::Float`] is 24-bit fixed point, cut into signed digits that the kernel can multiply:
//!   three of 8 bits or two of 12. The error is 2⁻²⁴ of the token's largest value, as that of an `f32`;
//!   sums are exact and hence the same on every device.

use super::dot::{self, Chunk, FLOAT_PLANES, PLANE_BITS};
use super::norm::Normalised;
use crate::float;
use crate::model::LinearInput;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN, STREAMS};
use bytemuck::Zeroable;

/// Largest magnitude of a fixed-point input: the highest of three 8-bit digits stays below 128.
const FIXED_MAX: f32 = (127u32 << 16) as f32;

/// The least largest magnitude that the quantiser of BitNet b1.58 divides by.
const INT8_LEAST: f32 = 1e-5;

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
    totals: Vec<i32>,
}

impl Codes {
    /// Zeros for tokens that are still to be [filled](TokenCodes::fill).
    pub fn blank(tokens: usize, width: usize, kind: LinearInput) -> Self {
        let padded = width.next_multiple_of(COL_ALIGN);
        let planes = match kind {
            LinearInput::Int8 => 1,
            LinearInput::Float => FLOAT_PLANES,
        };
        Self {
            kind,
            padded,
            planes,
            data: vec![Chunk::zeroed(); tokens * planes * padded / CHUNK_COLS],
            scales: vec![0.0; tokens],
            totals: vec![0; tokens * planes],
        }
    }

    pub fn tokens_mut(&mut self) -> impl Iterator<Item = TokenCodes<'_>> {
        let Self { kind, padded, planes, ref mut data, ref mut scales, ref mut totals } = *self;
        let chunks = padded / CHUNK_COLS;
        data.chunks_exact_mut(planes * chunks)
            .zip(totals.chunks_exact_mut(planes))
            .zip(scales)
            .map(move |((data, totals), scale)| TokenCodes { kind, chunks, data, totals, scale })
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
        &self.data[index * self.chunks()..(index + 1) * self.chunks()]
    }

    /// The sum of a vector.
    pub fn total(&self, index: usize) -> i32 {
        self.totals[index]
    }

    /// `value = integer / scale(token)`
    pub fn scale(&self, token: usize) -> f32 {
        self.scales[token]
    }
}

/// The place of a token's codes.
pub struct TokenCodes<'a> {
    kind: LinearInput,
    /// Chunks of a plane.
    chunks: usize,
    data: &'a mut [Chunk],
    totals: &'a mut [i32],
    scale: &'a mut f32,
}

impl TokenCodes<'_> {
    /// Int8 codes of a norm, by the quantiser of BitNet b1.58 in double precision.
    pub fn fill_normalised(mut self, row: &Normalised<'_>) {
        let scale = 127.0 / row.largest().max(f64::from(INT8_LEAST));
        *self.scale = scale as f32;
        let (mut sums, mut place) = ([0; CHUNK_COLS], 0);
        row.for_integers(scale, |integers| {
            self.put_plane(0, place, &integers, &mut sums);
            place = self.after(place);
        });
        self.totals[0] = sums.iter().sum();
    }

    /// Codes of single values, with the roundings that the quantiser's definition has.
    pub fn fill(mut self, row: &[f32]) {
        let max = float::largest(row);
        let scale = match self.kind {
            LinearInput::Int8 => 127.0 / max.max(INT8_LEAST),
            LinearInput::Float => FIXED_MAX / max.max(f32::MIN_POSITIVE * FIXED_MAX),
        };
        *self.scale = scale;
        let (mut sums, mut place) = ([[0; CHUNK_COLS]; FLOAT_PLANES], 0);
        float::for_chunks([row], |[values]| {
            let mut integers = values.map(|value| (value * scale).round_ties_even() as i32);
            for plane in (1..self.totals.len()).rev() {
                self.put_plane(plane, place, &integers.each_mut().map(take_digit), &mut sums[plane]);
            }
            self.put_plane(0, place, &integers, &mut sums[0]);
            place = self.after(place);
        });
        self.totals.iter_mut().zip(&sums).for_each(|(total, sums)| *total = sums.iter().sum());
    }

    /// The place of the chunk after another one's: a step further in its stream, or at the start of the next stream.
    fn after(&self, place: usize) -> usize {
        let next = place + STREAMS;
        if next < self.chunks { next } else { next - self.chunks + 1 }
    }

    /// Stores sixteen columns of a plane, and adds them to sums.
    #[inline(always)]
    fn put_plane(
        &mut self,
        plane: usize,
        place: usize,
        codes: &[i32; CHUNK_COLS],
        sums: &mut [i32; CHUNK_COLS],
    ) {
        self.data[plane * self.chunks + place] = dot::pack(codes);
        sums.iter_mut().zip(codes).for_each(|(sum, code)| *sum += code);
    }
}

/// Takes the lowest bits away as a signed digit.
#[inline(always)]
fn take_digit(integer: &mut i32) -> i32 {
    const UNUSED_BITS: u32 = i32::BITS - PLANE_BITS;
    let digit = (*integer << UNUSED_BITS) >> UNUSED_BITS;
    *integer = (*integer - digit) >> PLANE_BITS;
    digit
}
