//! `TQ2_0` of ggml (type 35): 256 two-bit codes in 64 bytes, then an `f16` scale.

use super::blocks::f16_at;

/// Codes in a block.
pub const CODES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 66;

/// Decodes one block to [`CODES`] codes; returns the scale.
pub fn decode(block: &[u8; BYTES], codes: &mut [u8; CODES]) -> f32 {
    let (bytes, scale) = block.split_at(64);
    let runs = codes.as_chunks_mut::<32>().0.as_chunks_mut::<4>().0;
    for (half, [first, second, third, last]) in bytes.as_chunks::<32>().0.iter().zip(runs) {
        *first = half.map(|byte| byte & 3);
        *second = half.map(|byte| byte >> 2 & 3);
        *third = half.map(|byte| byte >> 4 & 3);
        *last = half.map(|byte| byte >> 6);
    }
    f16_at(scale, 0)
}
