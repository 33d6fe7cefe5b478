//! The integer kernels of ternary products, chosen at compile time: relaxed SIMD or SIMD128 in
//! WebAssembly, portable Rust elsewhere. All take the weights of [`crate::quant::ternary`] and are exact;
//! each names the form in which it wants activations, and [`super::codes`] makes it.
//!
//! What a kernel provides:
//! * `NAME`, for `model.info.kernel`.
//! * `Code`, one integer activation; `PLANE_BITS`, the bits of one when an activation takes several
//!   ([`FLOAT_PLANES`]), as signed digits; and `pack`, which makes a [`Chunk`] of codes.
//! * `MAX_CHUNKS`, how many chunks one call of `dot_streams` or `dot_tile` may sum.
//! * `dot_streams`: whole rows and one token of int8 codes; `unpack` and `dot_tile`: several tokens.
//! * `add_runs`: everything else, by a [`RunKernel`].

use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, STREAMS};

#[cfg(not(target_feature = "simd128"))]
pub use super::portable::*;
#[cfg(all(target_feature = "simd128", target_feature = "relaxed-simd"))]
pub use super::relaxed::*;
#[cfg(all(target_feature = "simd128", not(target_feature = "relaxed-simd")))]
pub use super::simd128::*;

/// Bytes of one step of a group in one stream.
pub const STEP_BYTES: usize = 2 * CHUNK_COLS;
/// Integers with a fraction take this many bits, sign included; see [`super::codes`].
pub const FLOAT_BITS: u32 = 24;
/// Codes that one integer with a fraction takes.
pub const FLOAT_PLANES: usize = FLOAT_BITS.div_ceil(PLANE_BITS) as usize;
/// Most steps of a run of columns: `Σ weight · x` of 128 columns fits 32 bits, weights being 2 and integers
/// [`FLOAT_BITS`] at most, and `Σ code · x` of one digit fits 16 bits a lane where a kernel sums so.
pub const RUN_STEPS: usize = 8;
/// Rows of a tile.
pub const TILE_ROWS: usize = 2;
/// Most vectors of activations in a tile.
pub const TILE_VECTORS: usize = 6;

/// Sixteen columns: of activations, or of one row's codes when they are unpacked. Chunks go in processing
/// order: step by step, and in a step stream by stream.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable)]
#[repr(C, align(16))]
pub struct Chunk(pub [Code; CHUNK_COLS]);

/// `Σ code · x` for each of the eight rows of a group.
pub type RowSums = [i32; GROUP_ROWS];

/// The bytes of eight rows, one slice a stream.
pub type GroupBytes<'a> = [&'a [u8]; STREAMS];

/// The planes of one token, from one run's first chunk on.
#[derive(Clone, Copy)]
pub struct RunPlanes<'a> {
    /// Of each plane, the first chunk and every fourth after it belongs to the run.
    pub chunks: &'a [Chunk],
    /// Chunks from one plane to the next.
    pub stride: usize,
}

/// A step of eight rows, unpacked.
pub type StepCodes = [Chunk; GROUP_ROWS];

/// Sums over a run of columns for several tokens, whose planes follow each other in the same sums: modulo 2³², as
/// `Σ code · x` may not fit 32 bits where `Σ weight · x` does.
pub trait TileKernel {
    fn new() -> Self;

    /// For tile `tile` of eight rows, whose codes are given for every step, and some tokens: `x` has a chunk of each for
    /// every step of every plane.
    fn tile_sums<const V: usize>(codes: &[StepCodes], tile: usize, x: &[[Chunk; V]])
    -> [[i32; TILE_ROWS]; V];

    /// Unpacks steps.
    fn unpack(weights: &[u8], out: &mut [StepCodes]);
}

/// A [`TileKernel`] with sums for one token, whose activations have so many planes.
pub trait RunKernel<const PLANES: usize>: TileKernel {
    /// For eight rows. `weights` are consecutive steps of one stream, at most [`RUN_STEPS`].
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums;
}
