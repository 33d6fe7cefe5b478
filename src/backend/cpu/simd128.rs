//! The integer kernel in WebAssembly SIMD128 (strict: no relaxed instruction, so every browser takes
//! it).
//!
//! Codes are used in place: a 16-bit lane holds two columns' bytes, its low byte is masked to one row's
//! two bits without shifting them down, and the activations of the even columns are multiplied with it
//! by `i32x4.dot_i16x8`; one shift by eight brings the odd columns down. Accumulators therefore carry
//! factors of 1, 4, 16 and 64, which are divided out, exactly, once a group.

use super::dot::{RowSums, STEP_BYTES, STEP_STRIDE};
use crate::quant::ternary::{CHUNK_COLS, STREAMS};
use std::arch::wasm32::*;

pub const NAME: &str = "simd128";

/// Sums over the steps of one stream. `weights` is `steps` × 32 bytes; `x` starts at the stream's first
/// step and advances by [`STEP_STRIDE`].
pub fn dot_stream(weights: &[u8], x: &[i16]) -> RowSums {
    let steps = weights.len() / STEP_BYTES;
    assert!(steps == 0 || x.len() >= (steps - 1) * STEP_STRIDE + CHUNK_COLS);
    let mut sums = Sums::zero();
    for step in 0..steps {
        // SAFETY: `weights` has 32 bytes for every step, and `x` reaches the last one (asserted).
        unsafe { sums.step(weights.as_ptr().add(step * STEP_BYTES), x.as_ptr().add(step * STEP_STRIDE)) };
    }
    sums.finish()
}

/// Sums over all four streams in lock step, so that four addresses are read at once.
pub fn dot_streams(weights: [&[u8]; STREAMS], x: &[i16]) -> RowSums {
    let steps = weights[0].len() / STEP_BYTES;
    assert!(weights.iter().all(|w| w.len() == steps * STEP_BYTES) && x.len() >= steps * STEP_STRIDE);
    let mut sums = Sums::zero();
    let [w0, w1, w2, w3] = weights.map(<[u8]>::as_ptr);
    for step in 0..steps {
        // SAFETY: every stream has 32 bytes a step and `x` a stride a step (asserted).
        unsafe {
            let x = x.as_ptr().add(step * STEP_STRIDE);
            sums.step(w0.add(step * STEP_BYTES), x);
            sums.step(w1.add(step * STEP_BYTES), x.add(CHUNK_COLS));
            sums.step(w2.add(step * STEP_BYTES), x.add(2 * CHUNK_COLS));
            sums.step(w3.add(step * STEP_BYTES), x.add(3 * CHUNK_COLS));
        }
    }
    sums.finish()
}

/// One accumulator a row, row `r` scaled by `4^(r % 4)`.
struct Sums([v128; 8]);

impl Sums {
    #[inline(always)]
    fn zero() -> Self {
        Self([i32x4_splat(0); 8])
    }

    /// Adds 16 columns of eight rows.
    ///
    /// # Safety
    /// 32 bytes at `weights` and 16 values at `x` must be readable.
    #[inline(always)]
    unsafe fn step(&mut self, weights: *const u8, x: *const i16) {
        // SAFETY: the caller vouches for 32 bytes of weights and 32 bytes of activations.
        let (low, high, even, odd) = unsafe {
            (
                v128_load(weights.cast()),
                v128_load(weights.add(CHUNK_COLS).cast()),
                v128_load(x.cast()),
                v128_load(x.add(CHUNK_COLS / 2).cast()),
            )
        };
        self.half::<0>(low, even, odd);
        self.half::<4>(high, even, odd);
    }

    #[inline(always)]
    fn half<const FIRST: usize>(&mut self, codes: v128, even: v128, odd: v128) {
        let odd_codes = u16x8_shr(codes, 8);
        for row in 0..4 {
            let mask = i16x8_splat(0x03 << (2 * row));
            let products = i32x4_add(
                i32x4_dot_i16x8(v128_and(codes, mask), even),
                i32x4_dot_i16x8(v128_and(odd_codes, mask), odd),
            );
            self.0[FIRST + row] = i32x4_add(self.0[FIRST + row], products);
        }
    }

    #[inline(always)]
    fn finish(self) -> RowSums {
        let mut sums = [0; 8];
        for (half, out) in self.0.as_chunks::<4>().0.iter().zip(sums.as_chunks_mut::<4>().0) {
            // Every lane is a multiple of its row's factor; dividing first keeps their sum in 32 bits.
            let [a, b, c, d] = *half;
            *out = lane_sums(&[a, i32x4_shr(b, 2), i32x4_shr(c, 4), i32x4_shr(d, 6)]);
        }
        sums
    }
}

/// The sum of the lanes of each of four vectors.
#[inline(always)]
fn lane_sums(sums: &[v128; 4]) -> [i32; 4] {
    let [a, b, c, d] = *sums;
    let ab = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let cd = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    let all = i32x4_add(i32x4_shuffle::<0, 1, 4, 5>(ab, cd), i32x4_shuffle::<2, 3, 6, 7>(ab, cd));
    [
        i32x4_extract_lane::<0>(all),
        i32x4_extract_lane::<1>(all),
        i32x4_extract_lane::<2>(all),
        i32x4_extract_lane::<3>(all),
    ]
}
