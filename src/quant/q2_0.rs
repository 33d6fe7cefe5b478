//! `Q2_0` (type 42) and `PQ2_0` (type 142): an `f16` scale, then two-bit codes, four a byte, lowest
//! bits first. Upstream ggml has blocks of 64, PrismML's fork blocks of 128 (under either id). Code 3
//! is +2.

use super::blocks::f16_at;

/// Bytes of a block of `CODES` codes.
pub const fn block_bytes(codes: usize) -> usize {
    2 + codes / 4
}

/// Decodes one block of `codes.len()` codes; returns the scale.
pub fn decode(block: &[u8], codes: &mut [u8]) -> f32 {
    unpack(&block[2..], codes);
    f16_at(block, 0)
}

/// Four codes a byte, lowest bits first.
pub(super) fn unpack(bytes: &[u8], codes: &mut [u8]) {
    for (byte, out) in bytes.iter().zip(codes.as_chunks_mut::<4>().0) {
        *out = [byte & 3, (byte >> 2) & 3, (byte >> 4) & 3, byte >> 6];
    }
}
