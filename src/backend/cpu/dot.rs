//! The integer kernel of ternary products, chosen at compile time: SIMD128 in WebAssembly, portable
//! Rust elsewhere. Both take weights and activations in the order of [`crate::quant::ternary`] and
//! [`super::input`], and both are exact.

use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, STREAMS};

/// Bytes of one step of a group in one stream.
pub const STEP_BYTES: usize = 2 * CHUNK_COLS;
/// Activations between two steps of the same stream.
pub const STEP_STRIDE: usize = STREAMS * CHUNK_COLS;
/// Steps that one call may sum when activations use all 15 bits: accumulators hold up to
/// `4 · steps · 3 · 64 · 32767 < 2³¹`.
pub const MAX_WIDE_STEPS: usize = 64;

/// `Σ code · x` for each of the eight rows of a group.
pub type RowSums = [i32; GROUP_ROWS];

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub use super::simd128::{NAME, dot_stream, dot_streams};
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub use portable::{NAME, dot_stream, dot_streams};

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod portable {
    use super::*;

    pub const NAME: &str = "portable";

    /// Sums over the steps of one stream. `weights` is `steps` × 32 bytes; `x` starts at the stream's
    /// first step and advances by [`STEP_STRIDE`].
    pub fn dot_stream(weights: &[u8], x: &[i16]) -> RowSums {
        let mut sums = [0; GROUP_ROWS];
        for (step, bytes) in weights.as_chunks::<STEP_BYTES>().0.iter().enumerate() {
            let x = &x[step * STEP_STRIDE..step * STEP_STRIDE + CHUNK_COLS];
            add_step(bytes, x, &mut sums);
        }
        sums
    }

    /// Sums over all four streams in lock step.
    pub fn dot_streams(weights: [&[u8]; STREAMS], x: &[i16]) -> RowSums {
        let mut sums = [0; GROUP_ROWS];
        for (stream, weights) in weights.into_iter().enumerate() {
            let part = dot_stream(weights, &x[stream * CHUNK_COLS..]);
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        sums
    }

    fn add_step(bytes: &[u8; STEP_BYTES], x: &[i16], sums: &mut RowSums) {
        let half = CHUNK_COLS / 2;
        for (row, sum) in sums.iter_mut().enumerate() {
            let (start, shift) = (row / 4 * CHUNK_COLS, 2 * (row % 4));
            for col in 0..CHUNK_COLS {
                let code = i32::from((bytes[start + col] >> shift) & 3);
                *sum += code * i32::from(x[col % 2 * half + col / 2]);
            }
        }
    }
}
