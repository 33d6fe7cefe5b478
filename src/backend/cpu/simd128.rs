//! The integer kernel in WebAssembly SIMD128 (strict: no relaxed instruction, so every browser takes
//! it).
//!
//! Codes are used in place: a 16-bit lane holds two columns' bytes, its low byte is masked to one row's
//! two bits without shifting them down, and the activations of the even columns are multiplied with it
//! by `i32x4.dot_i16x8`; one shift by eight brings the odd columns down. Accumulators therefore carry
//! factors of 1, 4, 16 and 64, which are divided out, exactly, once a group.

use super::dot::{
    Chunk, FLOAT_PLANES, GroupBytes, RowSums, RunKernel, RunPlanes, STEP_BYTES, StepCodes, TILE_ROWS,
    TileKernel,
};
use super::lanes::{lane_sums, opaque_masks, tile_sums};
use super::run_product::RunProduct;
use super::streams::{GroupSums, Settling, for_steps, load_half, sum_streams};
use super::tiles::Tile;
use crate::quant::ternary::{CHUNK_COLS, STREAMS};
use std::arch::wasm32::*;

pub const NAME: &str = "simd128";

pub type Code = i16;

pub const PLANE_BITS: u32 = 12;

/// A lane sums `4 · 192 · 128` a chunk, which stays below 2³¹; so does the sum of all lanes.
pub const MAX_CHUNKS: usize = 1 << 14;

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
            *out = row_sums(*half);
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

/// The run kernel.
pub struct Simd128 {
    masks: [v128; 4],
}

impl Simd128 {
    /// Adds 16 columns of four rows, scaled as in [`Sums`], to those of each plane.
    ///
    /// # Safety
    /// `x` are chunks.
    #[inline(always)]
    unsafe fn add<const PLANES: usize>(
        &self,
        sums: &mut [[v128; 4]; PLANES],
        codes: v128,
        x: [*const Chunk; PLANES],
    ) {
        // SAFETY: a chunk is two vectors.
        let x = x.map(|x| unsafe { (v128_load(x.cast()), v128_load(x.cast::<v128>().add(1))) });
        let odd_codes = u16x8_shr(codes, 8);
        for (row, mask) in self.masks.into_iter().enumerate() {
            let (even_codes, odd_codes) = (v128_and(codes, mask), v128_and(odd_codes, mask));
            for (sums, (even, odd)) in sums.iter_mut().zip(x) {
                let products = i32x4_add(i32x4_dot_i16x8(even_codes, even), i32x4_dot_i16x8(odd_codes, odd));
                sums[row] = i32x4_add(sums[row], products);
            }
        }
    }
}

impl TileKernel for Simd128 {
    #[inline(always)]
    fn new() -> Self {
        Self { masks: opaque_masks(|mask| i16x8_splat(mask)) }
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

impl RunKernel<1> for Simd128 {
    #[inline(always)]
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums {
        let mut halves = [[[i32x4_splat(0); 4]]; 2];
        for_steps(weights, x, 1, |weights, x| {
            for (half, sums) in halves.iter_mut().enumerate() {
                // SAFETY: a step's bytes can be read, and its chunk.
                unsafe { self.add(sums, load_half(weights, half), [x]) };
            }
        });
        let sums = halves.map(|[sums]| row_sums(sums));
        std::array::from_fn(|row| sums[row / 4][row % 4])
    }
}

impl RunKernel<FLOAT_PLANES> for Simd128 {
    /// Half of the rows at a time: for that many sums there are registers.
    #[inline(always)]
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums {
        let mut out = RowSums::default();
        for (half, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let mut sums = [[i32x4_splat(0); 4]; FLOAT_PLANES];
            let stride = x.stride;
            for_steps(weights, x, FLOAT_PLANES, |weights, x| {
                let x = std::array::from_fn(|plane| x.wrapping_add(plane * stride));
                // SAFETY: a step's bytes can be read, and its chunks.
                unsafe { self.add(&mut sums, load_half(weights, half), x) };
            });
            let [upper, lower] = sums.map(row_sums);
            *out = std::array::from_fn(|row| (upper[row] << PLANE_BITS).wrapping_add(lower[row]));
        }
        out
    }
}

/// Every lane is a multiple of its row's factor; dividing first keeps their sum in 32 bits.
#[inline(always)]
fn row_sums([a, b, c, d]: [v128; 4]) -> [i32; 4] {
    lane_sums([a, i32x4_shr(b, 2), i32x4_shr(c, 4), i32x4_shr(d, 6)])
}

/// Plane after plane in the same sums: those of the higher ones are shifted up in between.
#[inline(always)]
fn run_tile_sums<const V: usize>(
    codes: &[StepCodes],
    tile: usize,
    x: &[[Chunk; V]],
) -> [[i32; TILE_ROWS]; V] {
    let mut sums = [[i32x4_splat(0); TILE_ROWS]; V];
    for plane in x.chunks_exact(codes.len()) {
        sums.as_flattened_mut().iter_mut().for_each(|sum| *sum = i32x4_shl(*sum, PLANE_BITS));
        for (codes, x) in codes.iter().zip(plane) {
            let rows = &codes.as_chunks::<TILE_ROWS>().0[tile];
            for half in 0..2 {
                let codes = rows.each_ref().map(|codes| codes.load(half));
                for (sums, x) in sums.iter_mut().zip(x) {
                    let x = x.load(half);
                    for (sum, codes) in sums.iter_mut().zip(codes) {
                        *sum = i32x4_add(*sum, i32x4_dot_i16x8(x, codes));
                    }
                }
            }
        }
    }
    tile_sums(sums)
}

impl Chunk {
    /// The even columns, or the odd ones.
    #[inline(always)]
    fn load(&self, half: usize) -> v128 {
        // SAFETY: a chunk is two vectors.
        unsafe { v128_load(self.0.as_chunks::<8>().0[half].as_ptr().cast()) }
    }
}

fn unpack_steps(weights: &[u8], out: &mut [StepCodes]) {
    let mask = i16x8_splat(3);
    for (weights, out) in weights.as_chunks::<STEP_BYTES>().0.iter().zip(out) {
        for (half, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // SAFETY: a step can be read.
            let codes = unsafe { load_half(weights.as_ptr(), half) };
            for (row, out) in out.iter_mut().enumerate() {
                for (odd, out) in out.0.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                    let codes = v128_and(u16x8_shr(codes, (8 * odd + 2 * row) as u32), mask);
                    // SAFETY: eight codes are a vector.
                    unsafe { v128_store(out.as_mut_ptr().cast(), codes) };
                }
            }
        }
    }
}

/// `out += x · Wᵀ` for the rows that are the tile's columns.
pub fn add_runs<const PLANES: usize>(product: &RunProduct<'_>, out: &mut Tile<'_>)
where
    Simd128: RunKernel<PLANES>,
{
    product.add::<Simd128, PLANES>(out);
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

/// Products of unpacked rows with `V` vectors.
#[inline(always)]
pub fn dot_tile<const V: usize>(codes: [&[Chunk]; TILE_ROWS], x: [&[Chunk]; V]) -> [[i32; TILE_ROWS]; V] {
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
        chunk += 1;
    }
    tile_sums(sums)
}
