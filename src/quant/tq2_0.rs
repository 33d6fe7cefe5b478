//! `TQ2_0` of ggml (type 35): 256 two-bit codes in 64 bytes, then an `f16` scale.

use super::blocks::f16_at;

/// Codes in a block.
pub const CODES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 66;

/// Decodes one block to [`CODES`] codes; returns the scale.
pub fn decode(block: &[u8; BYTES], codes: &mut [u8; CODES]) -> f32 {
    let (bytes, scale) = block.split_at(64);
    for (half, out) in bytes.chunks_exact(32).zip(codes.chunks_exact_mut(128)) {
        for (lane, run) in out.chunks_exact_mut(32).enumerate() {
            for (code, byte) in run.iter_mut().zip(half) {
                *code = (byte >> (2 * lane)) & 3;
            }
        }
    }
    f16_at(scale, 0)
}
