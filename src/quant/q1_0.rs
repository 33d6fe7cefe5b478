//! `Q1_0` of ggml (type 41): binary weights ±d, 128 to a block — an `f16` scale, then one bit a weight,
//! lowest bit first, 1 meaning +d. As ternary codes it is a matrix without zeros.

use super::blocks::f16_at;

/// Weights in a block.
pub const CODES: usize = 128;
/// Bytes of a block.
pub const BYTES: usize = 18;

/// Decodes one block to [`CODES`] codes (0 or 2); returns the scale.
pub fn decode(block: &[u8; BYTES], codes: &mut [u8; CODES]) -> f32 {
    for (byte, out) in block[2..].iter().zip(codes.as_chunks_mut::<8>().0) {
        for (bit, code) in out.iter_mut().enumerate() {
            *code = ((byte >> bit) & 1) * 2;
        }
    }
    f16_at(block, 0)
}
