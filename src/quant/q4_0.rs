//! `Q4_0` of ggml: 32 weights in 18 bytes — an `f16` scale, then nibbles, low ones first; weight
//! `(q - 8) · d`.

use super::blocks::f16_at;

pub const VALUES: usize = 32;
pub const BYTES: usize = 18;

/// Decodes one block.
pub fn decode(block: &[u8; BYTES], out: &mut [f32; VALUES]) {
    let scale = f16_at(block, 0);
    let (low, high) = out.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(&block[2..]) {
        *low = f32::from((byte & 15) as i8 - 8) * scale;
        *high = f32::from((byte >> 4) as i8 - 8) * scale;
    }
}
