//! The relaxed kernels for engines in which [`super::relaxed_lowering`] finds no instruction that sums
//! four products: products are summed in pairs, in 16 bits, and sums are widened before they can overflow.
//! Codes are used in place after one shift, so that accumulators carry factors of 1 and 4.

use super::dot::{Chunk, FLOAT_PLANES, RowSums, TILE_ROWS};
use super::lanes::{lane_sums, tile_sums};
use super::streams::{GroupSums, PlanesSums, Settling};
use crate::quant::ternary::CHUNK_COLS;
use std::arch::wasm32::*;

/// A step adds at most `2 · 12 · 128` to a lane: eight stay within 16 bits.
const STEPS: usize = 8;

/// An unpacked code adds at most `2 · 3 · 128` to a lane.
const TILE_CHUNKS: usize = 32;

#[inline(always)]
fn add_products(sum: v128, x: v128, codes: v128) -> v128 {
    i16x8_add(sum, i16x8_relaxed_dot_i8x16_i7x16(x, codes))
}

#[inline(always)]
fn widen(wide: v128, narrow: v128) -> v128 {
    i32x4_add(wide, i32x4_extadd_pairwise_i16x8(narrow))
}

/// The codes of four rows, those of the second and the fourth four times too large.
#[inline(always)]
fn rows_of(codes: v128) -> [v128; 4] {
    let upper = u16x8_shr(codes, 4);
    let (plain, fourfold) = (i8x16_splat(0x03), i8x16_splat(0x0c));
    [v128_and(codes, plain), v128_and(codes, fourfold), v128_and(upper, plain), v128_and(upper, fourfold)]
}

#[inline(always)]
fn row_sums([a, b, c, d]: [v128; 4]) -> [i32; 4] {
    // Every lane is a multiple of its row's factor.
    lane_sums([a, i32x4_shr(b, 2), c, i32x4_shr(d, 2)])
}

/// One accumulator a row, and what was widened so far.
pub struct Sums {
    narrow: [v128; 8],
    wide: [v128; 8],
}

impl GroupSums for Sums {
    #[inline(always)]
    fn zero() -> Self {
        Self { narrow: [i16x8_splat(0); 8], wide: [i32x4_splat(0); 8] }
    }

    #[inline(always)]
    unsafe fn step(&mut self, weights: *const u8, x: &Chunk) {
        // SAFETY: the caller vouches for the weights, and a chunk is one vector.
        let (halves, x) = unsafe {
            let halves = [v128_load(weights.cast()), v128_load(weights.add(CHUNK_COLS).cast())];
            (halves, v128_load(std::ptr::from_ref(x).cast()))
        };
        for (half, sums) in halves.into_iter().zip(self.narrow.as_chunks_mut::<4>().0) {
            for (sum, codes) in sums.iter_mut().zip(rows_of(half)) {
                *sum = add_products(*sum, x, codes);
            }
        }
    }

    #[inline(always)]
    fn finish(self) -> RowSums {
        let mut sums = RowSums::default();
        for (half, out) in self.wide.as_chunks::<4>().0.iter().zip(sums.as_chunks_mut::<4>().0) {
            *out = row_sums(*half);
        }
        sums
    }
}

impl Settling for Sums {
    const STEPS: usize = STEPS;

    #[inline(always)]
    fn settle(&mut self) {
        for (wide, narrow) in self.wide.iter_mut().zip(&mut self.narrow) {
            *wide = widen(*wide, *narrow);
            *narrow = i16x8_splat(0);
        }
    }
}

/// An accumulator for each plane and each of four rows, and what was widened so far.
pub struct HalfSums {
    narrow: [[v128; 4]; FLOAT_PLANES],
    wide: [[v128; 4]; FLOAT_PLANES],
}

impl PlanesSums for HalfSums {
    #[inline(always)]
    fn zero() -> Self {
        let zero = [[i32x4_splat(0); 4]; FLOAT_PLANES];
        Self { narrow: zero, wide: zero }
    }

    #[inline(always)]
    unsafe fn step(&mut self, weights: *const u8, x: [&Chunk; FLOAT_PLANES]) {
        // SAFETY: the caller vouches for the weights, and a chunk is one vector.
        let (codes, x) =
            unsafe { (v128_load(weights.cast()), x.map(|x| v128_load(std::ptr::from_ref(x).cast()))) };
        for (row, codes) in rows_of(codes).into_iter().enumerate() {
            for (sums, x) in self.narrow.iter_mut().zip(x) {
                sums[row] = add_products(sums[row], x, codes);
            }
        }
    }

    #[inline(always)]
    fn finish(self) -> [[i32; 4]; FLOAT_PLANES] {
        self.wide.map(row_sums)
    }
}

impl Settling for HalfSums {
    const STEPS: usize = STEPS;

    #[inline(always)]
    fn settle(&mut self) {
        for (wide, narrow) in self.wide.as_flattened_mut().iter_mut().zip(self.narrow.as_flattened_mut()) {
            *wide = widen(*wide, *narrow);
            *narrow = i16x8_splat(0);
        }
    }
}

/// Products of unpacked rows with `V` vectors, over every `STRIDE`th chunk.
#[inline(always)]
pub fn dot_tile<const V: usize, const STRIDE: usize>(
    codes: [&[Chunk]; TILE_ROWS],
    x: [&[Chunk]; V],
) -> [[i32; TILE_ROWS]; V] {
    let chunks = codes[0].len();
    assert!(codes[1].len() == chunks && x.iter().all(|x| x.len() == chunks));
    let mut wide = [[i32x4_splat(0); TILE_ROWS]; V];
    for first in (0..chunks).step_by(TILE_CHUNKS * STRIDE) {
        let mut narrow = [[i16x8_splat(0); TILE_ROWS]; V];
        for chunk in (first..chunks.min(first + TILE_CHUNKS * STRIDE)).step_by(STRIDE) {
            // SAFETY: all slices have `chunks` chunks (asserted), of one vector each.
            unsafe {
                let at = |chunks: &[Chunk]| v128_load(chunks.as_ptr().add(chunk).cast());
                let codes = codes.map(at);
                for (sums, x) in narrow.iter_mut().zip(&x) {
                    let x = at(x);
                    for (sum, codes) in sums.iter_mut().zip(codes) {
                        *sum = add_products(*sum, x, codes);
                    }
                }
            }
        }
        for (wide, narrow) in wide.as_flattened_mut().iter_mut().zip(narrow.as_flattened()) {
            *wide = widen(*wide, *narrow);
        }
    }
    tile_sums(wide)
}
