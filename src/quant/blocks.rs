//! The ternary encodings that cut a row into equal blocks with a scale each, behind one name, so that
//! a reader can decode any of them row by row.

use super::{ptq1_0, q1_0, q2_0, tq1_0, tq2_0};
use half::f16;

/// A block encoding of ternary (or binary) weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TernaryBlocks {
    Tq1_0,
    Tq2_0,
    /// `Q2_0` in blocks of 64.
    Q2_0G64,
    /// `Q2_0` in blocks of 128, and `PQ2_0`.
    Q2_0G128,
    Ptq1_0,
    Q1_0,
}

impl TernaryBlocks {
    /// `(codes, bytes)` of one block; a row is a whole number of blocks.
    pub fn block(self) -> (usize, usize) {
        match self {
            TernaryBlocks::Tq1_0 => (tq1_0::CODES, tq1_0::BYTES),
            TernaryBlocks::Tq2_0 => (tq2_0::CODES, tq2_0::BYTES),
            TernaryBlocks::Q2_0G64 => (64, q2_0::block_bytes(64)),
            TernaryBlocks::Q2_0G128 => (128, q2_0::block_bytes(128)),
            TernaryBlocks::Ptq1_0 => (ptq1_0::CODES, ptq1_0::BYTES),
            TernaryBlocks::Q1_0 => (q1_0::CODES, q1_0::BYTES),
        }
    }

    /// Decodes the blocks of one row: one code a column, one scale a block.
    pub fn decode_row(self, bytes: &[u8], codes: &mut [u8], scales: &mut [f32]) {
        match self {
            TernaryBlocks::Tq1_0 => each_block(bytes, codes, scales, tq1_0::decode),
            TernaryBlocks::Tq2_0 => each_block(bytes, codes, scales, tq2_0::decode),
            TernaryBlocks::Q2_0G64 => {
                each_block(bytes, codes, scales, |block: &[u8; 18], codes: &mut [u8; 64]| {
                    q2_0::decode(block, codes)
                });
            }
            TernaryBlocks::Q2_0G128 => {
                each_block(bytes, codes, scales, |block: &[u8; 34], codes: &mut [u8; 128]| {
                    q2_0::decode(block, codes)
                });
            }
            TernaryBlocks::Ptq1_0 => each_block(bytes, codes, scales, ptq1_0::decode),
            TernaryBlocks::Q1_0 => each_block(bytes, codes, scales, q1_0::decode),
        }
    }
}

fn each_block<const BYTES: usize, const CODES: usize>(
    bytes: &[u8],
    codes: &mut [u8],
    scales: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [u8; CODES]) -> f32,
) {
    let blocks = bytes.as_chunks::<BYTES>().0.iter().zip(codes.as_chunks_mut::<CODES>().0);
    for ((block, codes), scale) in blocks.zip(scales) {
        *scale = decode(block, codes);
    }
}

/// The little-endian `f16` at `bytes[at..at + 2]`.
#[inline]
pub(super) fn f16_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}
