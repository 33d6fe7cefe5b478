//! The relaxed kernels for engines in which [`super::relaxed_lowering`] finds no instruction that sums
//! four products: products are summed in pairs, in 16 bits, and sums are widened before they can overflow.
//! Codes are used in place after one shift, so that accumulators carry factors of 1 and 4.

use super::dot::{
    Chunk, FLOAT_PLANES, PLANE_BITS, RUN_STEPS, RowSums, RunKernel, RunPlanes, StepCodes, TILE_ROWS,
    TileKernel,
};
use super::lanes::{lane_sums, opaque_masks, tile_sums};
use super::relaxed::{join_planes, unpack_steps};
use super::streams::{GroupSums, Settling, for_steps, load_half};
use crate::quant::ternary::CHUNK_COLS;
use std::arch::wasm32::*;

/// A step adds at most `2 · 12 · 128` to a lane: so many stay within 16 bits.
const STEPS: usize = RUN_STEPS;

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

/// The run kernel; a run is too short to overflow 16 bits.
pub struct SumsIn16Bits {
    masks: [v128; 2],
}

impl SumsIn16Bits {
    /// Adds 16 columns of four rows, scaled as in [`rows_of`], to those of each plane.
    #[inline(always)]
    fn add<const PLANES: usize>(&self, sums: &mut [[v128; 4]; PLANES], codes: v128, x: [v128; PLANES]) {
        let upper = u16x8_shr(codes, 4);
        for (row, codes) in [codes, codes, upper, upper].into_iter().enumerate() {
            let codes = v128_and(codes, self.masks[row % 2]);
            for (sums, x) in sums.iter_mut().zip(x) {
                sums[row] = add_products(sums[row], x, codes);
            }
        }
    }
}

impl TileKernel for SumsIn16Bits {
    #[inline(always)]
    fn new() -> Self {
        Self { masks: opaque_masks(|mask| i8x16_splat(mask as i8)) }
    }

    #[inline(always)]
    fn tile_sums<const V: usize>(
        codes: &[StepCodes],
        tile: usize,
        x: &[[Chunk; V]],
    ) -> [[i32; TILE_ROWS]; V] {
        run_tile_sums(codes, tile, x)
    }

    #[inline(always)]
    fn unpack(weights: &[u8], out: &mut [StepCodes]) {
        unpack_steps(weights, out);
    }
}

impl RunKernel<1> for SumsIn16Bits {
    #[inline(always)]
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums {
        let mut halves = [[[i16x8_splat(0); 4]]; 2];
        for_steps(weights, x, 1, |weights, x| {
            for (half, sums) in halves.iter_mut().enumerate() {
                // SAFETY: a step's bytes can be read, and its chunk, which is a vector.
                let (codes, x) = unsafe { (load_half(weights, half), v128_load(x.cast())) };
                self.add(sums, codes, [x]);
            }
        });
        let sums = halves.map(|[sums]| row_sums(sums.map(|sum| i32x4_extadd_pairwise_i16x8(sum))));
        std::array::from_fn(|row| sums[row / 4][row % 4])
    }
}

impl RunKernel<FLOAT_PLANES> for SumsIn16Bits {
    /// Half of the rows at a time: for that many sums there are registers, nearly.
    #[inline(always)]
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums {
        let mut out = RowSums::default();
        for (half, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let mut sums = [[i16x8_splat(0); 4]; FLOAT_PLANES];
            let stride = x.stride;
            for_steps(weights, x, FLOAT_PLANES, |weights, x| {
                // SAFETY: a step's bytes can be read, and its chunks, which are vectors.
                let (codes, x) = unsafe {
                    let vectors =
                        std::array::from_fn(|plane| v128_load(x.wrapping_add(plane * stride).cast()));
                    (load_half(weights, half), vectors)
                };
                self.add(&mut sums, codes, x);
            });
            let wide = sums.map(|sums| sums.map(|sum| i32x4_extadd_pairwise_i16x8(sum)));
            *out = join_planes(wide.map(|[a, b, c, d]| [a, i32x4_shr(b, 2), c, i32x4_shr(d, 2)]));
        }
        out
    }
}

/// Plane after plane: sums of the higher ones are shifted up.
#[inline(always)]
fn run_tile_sums<const V: usize>(
    codes: &[StepCodes],
    tile: usize,
    x: &[[Chunk; V]],
) -> [[i32; TILE_ROWS]; V] {
    let mut wide = [[i32x4_splat(0); TILE_ROWS]; V];
    for plane in x.chunks_exact(codes.len()) {
        let mut narrow = [[i16x8_splat(0); TILE_ROWS]; V];
        for (codes, x) in codes.iter().zip(plane) {
            let codes = codes.as_chunks::<TILE_ROWS>().0[tile].each_ref().map(Chunk::load);
            for (sums, x) in narrow.iter_mut().zip(x) {
                let x = x.load();
                for (sum, codes) in sums.iter_mut().zip(codes) {
                    *sum = add_products(*sum, x, codes);
                }
            }
        }
        for (wide, narrow) in wide.as_flattened_mut().iter_mut().zip(narrow.as_flattened()) {
            *wide = widen(i32x4_shl(*wide, PLANE_BITS), *narrow);
        }
    }
    tile_sums(wide)
}

/// Products of unpacked rows with `V` vectors.
#[inline(always)]
pub fn dot_tile<const V: usize>(codes: [&[Chunk]; TILE_ROWS], x: [&[Chunk]; V]) -> [[i32; TILE_ROWS]; V] {
    let chunks = codes[0].len();
    assert!(codes[1].len() == chunks && x.iter().all(|x| x.len() == chunks));
    let mut wide = [[i32x4_splat(0); TILE_ROWS]; V];
    for first in (0..chunks).step_by(TILE_CHUNKS) {
        let mut narrow = [[i16x8_splat(0); TILE_ROWS]; V];
        for chunk in first..chunks.min(first + TILE_CHUNKS) {
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
