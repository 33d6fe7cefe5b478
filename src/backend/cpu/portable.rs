//! The integer kernels in portable Rust, written so that the compiler vectorises them.

use super::dot::{Chunk, FLOAT_PLANES, GroupBytes, PlaneSums, RowSums, STEP_BYTES, TILE_ROWS};
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

/// Sums over the steps of one stream; `x` starts at the stream's first step.
pub fn dot_stream(weights: &[u8], x: &[Chunk]) -> RowSums {
    let mut sums = RowSums::default();
    for (bytes, x) in weights.as_chunks::<STEP_BYTES>().0.iter().zip(x.iter().step_by(STREAMS)) {
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum += dot(&codes(bytes, row), x);
        }
    }
    sums
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

/// [`dot_stream`] for the planes of a float activation.
pub fn dot_stream_planes(weights: &[u8], x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    x.map(|x| dot_stream(weights, x))
}

/// [`dot_streams`] for the planes of a float activation.
pub fn dot_streams_planes(weights: GroupBytes<'_>, x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    x.map(|x| dot_streams(weights, x))
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

/// Products of unpacked rows with `V` vectors, over every `STRIDE`th chunk.
pub fn dot_tile<const V: usize, const STRIDE: usize>(
    codes: [&[Chunk]; TILE_ROWS],
    x: [&[Chunk]; V],
) -> [[i32; TILE_ROWS]; V] {
    x.map(|x| {
        codes.map(|codes| {
            let pairs = codes.iter().zip(x).step_by(STRIDE);
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
