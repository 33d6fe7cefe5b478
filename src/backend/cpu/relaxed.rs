//! The integer kernels in WebAssembly relaxed SIMD, around `i32x4.relaxed_dot_i8x16_i7x16_add`: sixteen
//! products and their sum in one instruction (`vpdpbusd` on x86, `sdot` on Arm). Where an engine has no such
//! instruction, those of [`super::relaxed16`] take their place.
//!
//! Relaxed means that engines may differ where the second operand has its top bit set; codes never do, so
//! the sums are the same everywhere. Codes are used in place: a byte is masked to one row's two bits
//! without shifting them down (only the topmost field must come down, for the top bit's sake), so
//! accumulators carry factors of 1, 4, 16 and 1, which are divided out, exactly, once a group.

use super::dot::{
    Chunk, FLOAT_PLANES, GroupBytes, RowSums, RunKernel, RunPlanes, STEP_BYTES, StepCodes, TILE_ROWS,
    TileKernel,
};
use super::lanes::{lane_sums, opaque_masks, tile_sums};
use super::relaxed_lowering::sums_in_16_bits;
use super::relaxed16;
use super::run_product::RunProduct;
use super::streams::{GroupSums, Settling, for_steps, load_half, sum_streams};
use super::tiles::Tile;
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

/// The run kernel of engines with an instruction for [`dot`].
pub struct OneInstruction {
    masks: [v128; 3],
}

impl OneInstruction {
    /// Adds 16 columns of four rows, scaled as in [`Sums`], to those of each plane.
    #[inline(always)]
    fn add<const PLANES: usize>(&self, sums: &mut [[v128; 4]; PLANES], codes: v128, x: [v128; PLANES]) {
        let top = u16x8_shr(codes, 6);
        for (row, codes) in [codes, codes, codes, top].into_iter().enumerate() {
            let codes = v128_and(codes, self.masks[row % 3]);
            for (sums, x) in sums.iter_mut().zip(x) {
                sums[row] = dot(x, codes, sums[row]);
            }
        }
    }
}

impl TileKernel for OneInstruction {
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

impl RunKernel<1> for OneInstruction {
    #[inline(always)]
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums {
        let mut halves = [[[i32x4_splat(0); 4]]; 2];
        for_steps(weights, x, 1, |weights, x| {
            for (half, sums) in halves.iter_mut().enumerate() {
                // SAFETY: a step's bytes can be read, and its chunk, which is a vector.
                let (codes, x) = unsafe { (load_half(weights, half), v128_load(x.cast())) };
                self.add(sums, codes, [x]);
            }
        });
        let sums = halves.map(|[[a, b, c, d]]| lane_sums([a, i32x4_shr(b, 2), i32x4_shr(c, 4), d]));
        std::array::from_fn(|row| sums[row / 4][row % 4])
    }
}

impl RunKernel<FLOAT_PLANES> for OneInstruction {
    /// Half of the rows at a time: for that many sums there are registers, nearly.
    #[inline(always)]
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums {
        let mut out = RowSums::default();
        for (half, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let mut sums = [[i32x4_splat(0); 4]; FLOAT_PLANES];
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
            *out = join_planes(sums.map(|[a, b, c, d]| [a, i32x4_shr(b, 2), i32x4_shr(c, 4), d]));
        }
        out
    }
}

/// The sums of the lanes of four rows, with those of higher planes shifted up.
#[inline(always)]
pub fn join_planes([upper, middle, lower]: [[v128; 4]; FLOAT_PLANES]) -> [i32; 4] {
    // The lower two fit 32 bits together.
    let lower = std::array::from_fn(|row| i32x4_add(i32x4_shl(middle[row], PLANE_BITS), lower[row]));
    let (upper, lower) = (lane_sums(upper), lane_sums(lower));
    std::array::from_fn(|row| (upper[row] << (2 * PLANE_BITS)).wrapping_add(lower[row]))
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
            let codes = codes.as_chunks::<TILE_ROWS>().0[tile].each_ref().map(Chunk::load);
            for (sums, x) in sums.iter_mut().zip(x) {
                let x = x.load();
                for (sum, codes) in sums.iter_mut().zip(codes) {
                    *sum = dot(x, codes, *sum);
                }
            }
        }
    }
    tile_sums(sums)
}

impl Chunk {
    #[inline(always)]
    pub fn load(&self) -> v128 {
        // SAFETY: a chunk is one vector.
        unsafe { v128_load(self.0.as_ptr().cast()) }
    }

    #[inline(always)]
    pub fn store(&mut self, vector: v128) {
        // SAFETY: as above.
        unsafe { v128_store(self.0.as_mut_ptr().cast(), vector) };
    }
}

#[inline(always)]
pub fn unpack_steps(weights: &[u8], out: &mut [StepCodes]) {
    let mask = i8x16_splat(3);
    for (weights, out) in weights.as_chunks::<STEP_BYTES>().0.iter().zip(out) {
        for (half, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // SAFETY: a step can be read.
            let codes = unsafe { load_half(weights.as_ptr(), half) };
            for (row, out) in out.iter_mut().enumerate() {
                out.store(v128_and(u16x8_shr(codes, 2 * row as u32), mask));
            }
        }
    }
}

/// `out += x · Wᵀ` for the rows that are the tile's columns.
pub fn add_runs<const PLANES: usize>(product: &RunProduct<'_>, out: &mut Tile<'_>)
where
    OneInstruction: RunKernel<PLANES>,
    relaxed16::SumsIn16Bits: RunKernel<PLANES>,
{
    if sums_in_16_bits() {
        product.add::<relaxed16::SumsIn16Bits, PLANES>(out);
    } else {
        product.add::<OneInstruction, PLANES>(out);
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

/// Products of unpacked rows with `V` vectors.
#[inline(always)]
pub fn dot_tile<const V: usize>(codes: [&[Chunk]; TILE_ROWS], x: [&[Chunk]; V]) -> [[i32; TILE_ROWS]; V] {
    if sums_in_16_bits() {
        return relaxed16::dot_tile::<V>(codes, x);
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
        chunk += 1;
    }
    tile_sums(sums)
}
