//! `Q4_1` of ggml: 32 weights in 20 bytes — an `f16` scale `d`, an `f16` minimum `m`, then nibbles, low
//! ones first; weight `q · d + m`.

use super::blocks::f16_at;

pub const VALUES: usize = 32;
pub const BYTES: usize = 20;

/// Decodes one block.
pub fn decode(block: &[u8; BYTES], out: &mut [f32; VALUES]) {
    let (scale, min) = (f16_at(block, 0), f16_at(block, 2));
    let (low, high) = out.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(&block[4..]) {
        *low = f32::from(byte & 15) * scale + min;
        *high = f32::from(byte >> 4) * scale + min;
    }
}
