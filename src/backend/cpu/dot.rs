//! The integer kernels of ternary products, chosen at compile time: relaxed SIMD or SIMD128 in
//! WebAssembly, portable Rust elsewhere. All take the weights of [`crate::quant::ternary`] and are exact;
//! each names the form in which it wants activations, and [`super::codes`] makes it.
//!
//! What a kernel provides:
//! * `NAME`, for `model.info.kernel`.
//! * `Code`, one integer activation; `PLANE_BITS`, the bits of one when an activation takes several
//!   ([`FLOAT_PLANES`]), as signed digits; and `pack`, which makes a [`Chunk`] of codes.
//! * `MAX_CHUNKS`, how many chunks of full-size activations one call may sum.
//! * `dot_stream` and `dot_streams`: one token; with `_planes`, one whose activations take several codes.
//! * `unpack` and `dot_tile`: several tokens.

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

/// [`RowSums`] of each plane of a float activation.
pub type PlaneSums = [RowSums; FLOAT_PLANES];

/// The bytes of eight rows, one slice a stream.
pub type GroupBytes<'a> = [&'a [u8]; STREAMS];
