//! The integer kernel in WebAssembly SIMD128 (strict: no relaxed instruction, so every browser takes
//! it).
//!
//! Codes are used in place: a 16-bit lane holds two columns' bytes, its low byte is masked to one row's
//! two bits without shifting them down, and the activations of the even columns are multiplied with it
//! by `i32x4.dot_i16x8`; one shift by eight brings the odd columns down. Accumulators therefore carry
//! factors of 1, 4, 16 and 64, which are divided out, exactly, once a group.

use super::dot::{Chunk, FLOAT_PLANES, GroupBytes, PlaneSums, RowSums, STEP_BYTES, TILE_ROWS};
use super::lanes::{lane_sums, tile_sums};
use super::streams::{
    GroupSums, PlanesSums, Settling, sum_stream, sum_stream_planes, sum_streams, sum_streams_planes,
};
use crate::quant::ternary::{CHUNK_COLS, STREAMS};
use std::arch::wasm32::*;

pub const NAME: &str = "simd128";

pub type Code = i16;

pub const PLANE_BITS: u32 = 12;

/// A lane sums `4 · 192 · 2048` a chunk, which stays below 2³¹; so does the sum of all lanes.
pub const MAX_CHUNKS: usize = 1 << 10;

/// Codes of sixteen columns: the even columns, then the odd ones.
#[inline(always)]
pub fn pack(codes: &[i32; CHUNK_COLS]) -> Chunk {
    let at = codes.as_ptr().cast::<v128>();
    let mut chunk = Chunk([0; CHUNK_COLS]);
    // SAFETY: sixteen integers are four vectors, and a chunk is two.
    unsafe {
        let eight =
            |half: usize| i16x8_narrow_i32x4(v128_load(at.add(2 * half)), v128_load(at.add(2 * half + 1)));
        let (lower, upper) = (eight(0), eight(1));
        let to = chunk.0.as_mut_ptr().cast::<v128>();
        v128_store(to, i16x8_shuffle::<0, 2, 4, 6, 8, 10, 12, 14>(lower, upper));
        v128_store(to.add(1), i16x8_shuffle::<1, 3, 5, 7, 9, 11, 13, 15>(lower, upper));
    }
    chunk
}

/// Sums over the steps of one stream; `x` starts at the stream's first step.
pub fn dot_stream(weights: &[u8], x: &[Chunk]) -> RowSums {
    sum_stream::<Sums>(weights, x)
}

/// Sums over all four streams in lock step.
pub fn dot_streams(weights: GroupBytes<'_>, x: &[Chunk]) -> RowSums {
    sum_streams::<Sums>(weights, x)
}

/// One accumulator a row, row `r` scaled by `4^(r % 4)`.
struct Sums([v128; 8]);

impl Settling for Sums {}

impl GroupSums for Sums {
    #[inline(always)]
    fn zero() -> Self {
        Self([i32x4_splat(0); 8])
    }

    #[inline(always)]
    unsafe fn step(&mut self, weights: *const u8, x: &Chunk) {
        // SAFETY: the caller vouches for the weights.
        let (low, high) = unsafe { (v128_load(weights.cast()), v128_load(weights.add(CHUNK_COLS).cast())) };
        let x = std::ptr::from_ref(x).cast::<v128>();
        // SAFETY: a chunk is two vectors.
        let (even, odd) = unsafe { (v128_load(x), v128_load(x.add(1))) };
        self.half::<0>(low, even, odd);
        self.half::<4>(high, even, odd);
    }

    #[inline(always)]
    fn finish(self) -> RowSums {
        let mut sums = [0; 8];
        for (half, out) in self.0.as_chunks::<4>().0.iter().zip(sums.as_chunks_mut::<4>().0) {
            // Every lane is a multiple of its row's factor; dividing first keeps their sum in 32 bits.
            let [a, b, c, d] = *half;
            *out = lane_sums([a, i32x4_shr(b, 2), i32x4_shr(c, 4), i32x4_shr(d, 6)]);
        }
        sums
    }
}

impl Sums {
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
}

/// [`dot_stream`] for the planes of a float activation.
pub fn dot_stream_planes(weights: &[u8], x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    sum_stream_planes::<HalfSums>(weights, x)
}

/// [`dot_streams`] for the planes of a float activation.
pub fn dot_streams_planes(weights: GroupBytes<'_>, x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    sum_streams_planes::<HalfSums>(weights, x)
}

/// An accumulator for each plane and each of four rows, scaled as in [`Sums`].
struct HalfSums([[v128; 4]; FLOAT_PLANES]);

impl Settling for HalfSums {}

impl PlanesSums for HalfSums {
    #[inline(always)]
    fn zero() -> Self {
        Self([[i32x4_splat(0); 4]; FLOAT_PLANES])
    }

    #[inline(always)]
    unsafe fn step(&mut self, weights: *const u8, x: [&Chunk; FLOAT_PLANES]) {
        // SAFETY: the caller vouches for the weights, and a chunk is two vectors.
        let (codes, x) = unsafe {
            let vectors = x.map(|x| {
                let x = std::ptr::from_ref(x).cast::<v128>();
                (v128_load(x), v128_load(x.add(1)))
            });
            (v128_load(weights.cast()), vectors)
        };
        let odd_codes = u16x8_shr(codes, 8);
        for row in 0..4 {
            let mask = i16x8_splat(0x03 << (2 * row));
            let (even_codes, odd_codes) = (v128_and(codes, mask), v128_and(odd_codes, mask));
            for (sums, (even, odd)) in self.0.iter_mut().zip(x) {
                let products = i32x4_add(i32x4_dot_i16x8(even_codes, even), i32x4_dot_i16x8(odd_codes, odd));
                sums[row] = i32x4_add(sums[row], products);
            }
        }
    }

    #[inline(always)]
    fn finish(self) -> [[i32; 4]; FLOAT_PLANES] {
        self.0.map(|[a, b, c, d]| lane_sums([a, i32x4_shr(b, 2), i32x4_shr(c, 4), i32x4_shr(d, 6)]))
    }
}

/// Unpacks the codes of eight rows, `[8, chunks]`.
pub fn unpack(weights: GroupBytes<'_>, out: &mut [Chunk]) {
    let steps = weights[0].len() / STEP_BYTES;
    let chunks = STREAMS * steps;
    assert!(weights.iter().all(|w| w.len() == steps * STEP_BYTES) && out.len() == 8 * chunks);
    let mask = i16x8_splat(3);
    let weights = weights.map(<[u8]>::as_ptr);
    for step in 0..steps {
        for half in 0..2 {
            // SAFETY: a step is 32 bytes of each stream, and `out` has a chunk of two vectors for each of them and each
            // of eight rows (asserted).
            unsafe {
                let codes =
                    weights.map(|from| v128_load(from.add(step * STEP_BYTES + half * CHUNK_COLS).cast()));
                for row in 0..4 {
                    let to = out.as_mut_ptr().add((4 * half + row) * chunks + step * STREAMS).cast::<v128>();
                    for (stream, codes) in codes.into_iter().enumerate() {
                        v128_store(to.add(2 * stream), v128_and(u16x8_shr(codes, 2 * row as u32), mask));
                        v128_store(
                            to.add(2 * stream + 1),
                            v128_and(u16x8_shr(codes, 8 + 2 * row as u32), mask),
                        );
                    }
                }
            }
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
    let mut sums = [[i32x4_splat(0); TILE_ROWS]; V];
    let mut chunk = 0;
    while chunk < chunks {
        for half in 0..2 {
            // SAFETY: all slices have `chunks` chunks (asserted), of two vectors each.
            unsafe {
                let at = |chunks: &[Chunk]| v128_load(chunks.as_ptr().add(chunk).cast::<v128>().add(half));
                let codes = codes.map(at);
                for (sums, x) in sums.iter_mut().zip(&x) {
                    let x = at(x);
                    for (sum, codes) in sums.iter_mut().zip(codes) {
                        *sum = i32x4_add(*sum, i32x4_dot_i16x8(x, codes));
                    }
                }
            }
        }
        chunk += STRIDE;
    }
    tile_sums(sums)
}
