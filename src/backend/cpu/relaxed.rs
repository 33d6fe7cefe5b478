//! The integer kernels in WebAssembly relaxed SIMD, around `i32x4.relaxed_dot_i8x16_i7x16_add`: sixteen
//! products and their sum in one instruction (`vpdpbusd` on x86, `sdot` on Arm). Where an engine has no such
//! instruction, those of [`super::relaxed16`] take their place.
//!
//! Relaxed means that engines may differ where the second operand has its top bit set; codes never do, so
//! the sums are the same everywhere. Codes are used in place: a byte is masked to one row's two bits
//! without shifting them down (only the topmost field must come down, for the top bit's sake), so
//! accumulators carry factors of 1, 4, 16 and 1, which are divided out, exactly, once a group.

use super::dot::{Chunk, FLOAT_PLANES, GroupBytes, PlaneSums, RowSums, STEP_BYTES, TILE_ROWS};
use super::lanes::lane_sums;
use super::relaxed_lowering::sums_in_16_bits;
use super::relaxed16;
use super::streams::{
    GroupSums, PlanesSums, Settling, sum_stream, sum_stream_planes, sum_streams, sum_streams_planes,
};
use crate::quant::ternary::{CHUNK_COLS, STREAMS};
use std::arch::wasm32::*;

pub const NAME: &str = "relaxed-simd";

pub type Code = i8;

pub const PLANE_BITS: u32 = 8;

/// A lane sums `4 · 48 · 128` a chunk, which stays below 2³¹; so does the sum of all lanes.
pub const MAX_CHUNKS: usize = 1 << 14;

/// Codes of sixteen columns, in their own order.
#[inline(always)]
pub fn pack(codes: &[i32; CHUNK_COLS]) -> Chunk {
    let at = codes.as_ptr().cast::<v128>();
    let mut chunk = Chunk([0; CHUNK_COLS]);
    // SAFETY: sixteen integers are four vectors, and a chunk is one.
    unsafe {
        let eight =
            |half: usize| i16x8_narrow_i32x4(v128_load(at.add(2 * half)), v128_load(at.add(2 * half + 1)));
        v128_store(chunk.0.as_mut_ptr().cast(), i8x16_narrow_i16x8(eight(0), eight(1)));
    }
    chunk
}

#[inline(always)]
fn dot(x: v128, codes: v128, sum: v128) -> v128 {
    i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, sum)
}

/// Sums over the steps of one stream; `x` starts at the stream's first step.
pub fn dot_stream(weights: &[u8], x: &[Chunk]) -> RowSums {
    if sums_in_16_bits() { sum_stream::<relaxed16::Sums>(weights, x) } else { sum_stream::<Sums>(weights, x) }
}

/// Sums over all four streams in lock step.
pub fn dot_streams(weights: GroupBytes<'_>, x: &[Chunk]) -> RowSums {
    if sums_in_16_bits() {
        sum_streams::<relaxed16::Sums>(weights, x)
    } else {
        sum_streams::<Sums>(weights, x)
    }
}

/// One accumulator a row, those of rows `r` with `r % 4` of 1 and 2 scaled by 4 and 16.
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
        // SAFETY: a chunk is one vector.
        let x = unsafe { v128_load(std::ptr::from_ref(x).cast()) };
        self.half::<0>(low, x);
        self.half::<4>(high, x);
    }

    #[inline(always)]
    fn finish(self) -> RowSums {
        let mut sums = RowSums::default();
        for (half, out) in self.0.as_chunks::<4>().0.iter().zip(sums.as_chunks_mut::<4>().0) {
            // Every lane is a multiple of its row's factor.
            let [a, b, c, d] = *half;
            *out = lane_sums([a, i32x4_shr(b, 2), i32x4_shr(c, 4), d]);
        }
        sums
    }
}

impl Sums {
    #[inline(always)]
    fn half<const FIRST: usize>(&mut self, codes: v128, x: v128) {
        let sums = &mut self.0;
        sums[FIRST] = dot(x, v128_and(codes, i8x16_splat(0x03)), sums[FIRST]);
        sums[FIRST + 1] = dot(x, v128_and(codes, i8x16_splat(0x0c)), sums[FIRST + 1]);
        sums[FIRST + 2] = dot(x, v128_and(codes, i8x16_splat(0x30)), sums[FIRST + 2]);
        sums[FIRST + 3] = dot(x, v128_and(u16x8_shr(codes, 6), i8x16_splat(0x03)), sums[FIRST + 3]);
    }
}

/// [`dot_stream`] for the planes of a float activation.
pub fn dot_stream_planes(weights: &[u8], x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    if sums_in_16_bits() {
        sum_stream_planes::<relaxed16::HalfSums>(weights, x)
    } else {
        sum_stream_planes::<HalfSums>(weights, x)
    }
}

/// [`dot_streams`] for the planes of a float activation.
pub fn dot_streams_planes(weights: GroupBytes<'_>, x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    if sums_in_16_bits() {
        sum_streams_planes::<relaxed16::HalfSums>(weights, x)
    } else {
        sum_streams_planes::<HalfSums>(weights, x)
    }
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
        // SAFETY: the caller vouches for the weights, and a chunk is one vector.
        let (codes, x) =
            unsafe { (v128_load(weights.cast()), x.map(|x| v128_load(std::ptr::from_ref(x).cast()))) };
        let top = u16x8_shr(codes, 6);
        for (row, codes) in [(0, codes), (1, codes), (2, codes), (3, top)] {
            let codes = v128_and(codes, i8x16_splat(if row == 3 { 0x03 } else { 0x03 << (2 * row) }));
            for (sums, x) in self.0.iter_mut().zip(x) {
                sums[row] = dot(x, codes, sums[row]);
            }
        }
    }

    #[inline(always)]
    fn finish(self) -> [[i32; 4]; FLOAT_PLANES] {
        self.0.map(|[a, b, c, d]| lane_sums([a, i32x4_shr(b, 2), i32x4_shr(c, 4), d]))
    }
}

/// Unpacks the codes of eight rows, `[8, chunks]`.
pub fn unpack(weights: GroupBytes<'_>, out: &mut [Chunk]) {
    let steps = weights[0].len() / STEP_BYTES;
    let chunks = STREAMS * steps;
    assert!(weights.iter().all(|w| w.len() == steps * STEP_BYTES) && out.len() == 8 * chunks);
    let mask = i8x16_splat(3);
    let weights = weights.map(<[u8]>::as_ptr);
    for step in 0..steps {
        for half in 0..2 {
            // SAFETY: a step is 32 bytes of each stream, and `out` has a chunk for each of them and each of eight
            // rows (asserted).
            unsafe {
                let codes =
                    weights.map(|from| v128_load(from.add(step * STEP_BYTES + half * CHUNK_COLS).cast()));
                for row in 0..4 {
                    let to = out.as_mut_ptr().add((4 * half + row) * chunks + step * STREAMS).cast::<v128>();
                    for (stream, codes) in codes.into_iter().enumerate() {
                        v128_store(to.add(stream), v128_and(u16x8_shr(codes, 2 * row as u32), mask));
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
    if sums_in_16_bits() {
        return relaxed16::dot_tile::<V, STRIDE>(codes, x);
    }
    let chunks = codes[0].len();
    assert!(codes[1].len() == chunks && x.iter().all(|x| x.len() == chunks));
    let mut sums = [[i32x4_splat(0); TILE_ROWS]; V];
    let mut chunk = 0;
    while chunk < chunks {
        // SAFETY: all slices have `chunks` chunks (asserted).
        unsafe {
            let codes = codes.map(|codes| v128_load(codes.as_ptr().add(chunk).cast()));
            for (sums, x) in sums.iter_mut().zip(&x) {
                let x = v128_load(x.as_ptr().add(chunk).cast());
                for (sum, codes) in sums.iter_mut().zip(codes) {
                    *sum = dot(x, codes, *sum);
                }
            }
        }
        chunk += STRIDE;
    }
    super::lanes::tile_sums(sums)
}
