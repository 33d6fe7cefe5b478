//! The integer kernels in portable Rust, written so that the compiler vectorises them.

use super::dot::{
    Chunk, GroupBytes, RowSums, RunKernel, RunPlanes, STEP_BYTES, StepCodes, TILE_ROWS, TileKernel,
};
use super::run_product::RunProduct;
use super::tiles::Tile;
use crate::quant::ternary::{CHUNK_COLS, STREAMS};

pub const NAME: &str = "portable";

pub type Code = i8;

pub const PLANE_BITS: u32 = 8;

/// `4 · 16 · 3 · 128` a chunk stays below 2³¹.
pub const MAX_CHUNKS: usize = 1 << 16;

/// Codes of sixteen columns, in their own order.
pub fn pack(codes: &[i32; CHUNK_COLS]) -> Chunk {
    Chunk(codes.map(|code| code as Code))
}

/// Sums over all four streams in lock step.
pub fn dot_streams(weights: GroupBytes<'_>, x: &[Chunk]) -> RowSums {
    let mut sums = RowSums::default();
    for (stream, weights) in weights.into_iter().enumerate() {
        let part = dot_stream(weights, &x[stream..]);
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sums
}

/// Sums over the steps of one stream; `x` starts at the stream's first step.
fn dot_stream(weights: &[u8], x: &[Chunk]) -> RowSums {
    let mut sums = RowSums::default();
    for (bytes, x) in weights.as_chunks::<STEP_BYTES>().0.iter().zip(x.iter().step_by(STREAMS)) {
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum += dot(&codes(bytes, row), x);
        }
    }
    sums
}

/// The run kernel.
pub struct Portable;

impl TileKernel for Portable {
    fn new() -> Self {
        Self
    }

    fn tile_sums<const V: usize>(
        codes: &[StepCodes],
        tile: usize,
        x: &[[Chunk; V]],
    ) -> [[i32; TILE_ROWS]; V] {
        x.chunks_exact(codes.len()).fold([[0; TILE_ROWS]; V], |mut sums, plane| {
            for (token, sums) in sums.iter_mut().enumerate() {
                let row_sum =
                    |row| codes.iter().zip(plane).map(|(codes, x)| dot(&codes[row], &x[token])).sum();
                shift_and_add(sums, std::array::from_fn(|row| row_sum(tile * TILE_ROWS + row)));
            }
            sums
        })
    }

    fn unpack(weights: &[u8], out: &mut [StepCodes]) {
        for (bytes, out) in weights.as_chunks::<STEP_BYTES>().0.iter().zip(out) {
            *out = std::array::from_fn(|row| codes(bytes, row));
        }
    }
}

impl<const PLANES: usize> RunKernel<PLANES> for Portable {
    fn group_sums(&self, weights: &[u8], x: RunPlanes<'_>) -> RowSums {
        (0..PLANES).fold(RowSums::default(), |mut sums, plane| {
            shift_and_add(&mut sums, dot_stream(weights, &x.chunks[plane * x.stride..]));
            sums
        })
    }
}

/// Appends the next lower plane to the sums of the higher ones.
fn shift_and_add<const ROWS: usize>(sums: &mut [i32; ROWS], plane: [i32; ROWS]) {
    for (sum, plane) in sums.iter_mut().zip(plane) {
        *sum = (*sum << PLANE_BITS).wrapping_add(plane);
    }
}

/// `out += x · Wᵀ` for the rows that are the tile's columns.
pub fn add_runs<const PLANES: usize>(product: &RunProduct<'_>, out: &mut Tile<'_>) {
    product.add::<Portable, PLANES>(out);
}

/// Unpacks the codes of eight rows, `[8, chunks]`.
pub fn unpack(weights: GroupBytes<'_>, out: &mut [Chunk]) {
    let chunks = STREAMS * weights[0].len() / STEP_BYTES;
    for (row, out) in out.chunks_exact_mut(chunks).enumerate() {
        for (stream, weights) in weights.iter().enumerate() {
            let steps = weights.as_chunks::<STEP_BYTES>().0;
            for (bytes, out) in steps.iter().zip(out[stream..].iter_mut().step_by(STREAMS)) {
                *out = codes(bytes, row);
            }
        }
    }
}

/// Products of unpacked rows with `V` vectors.
pub fn dot_tile<const V: usize>(codes: [&[Chunk]; TILE_ROWS], x: [&[Chunk]; V]) -> [[i32; TILE_ROWS]; V] {
    x.map(|x| {
        codes.map(|codes| {
            let pairs = codes.iter().zip(x);
            pairs.map(|(codes, x)| dot(codes, x)).sum()
        })
    })
}

fn dot(codes: &Chunk, x: &Chunk) -> i32 {
    codes.0.iter().zip(&x.0).map(|(code, x)| i32::from(i16::from(*code) * i16::from(*x))).sum()
}

/// The codes of one row of a group in one step.
fn codes(bytes: &[u8; STEP_BYTES], row: usize) -> Chunk {
    let (start, shift) = (row / 4 * CHUNK_COLS, 2 * (row % 4));
    Chunk(std::array::from_fn(|col| ((bytes[start + col] >> shift) & 3) as i8))
}
