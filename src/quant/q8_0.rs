//! `Q8_0` of ggml: 32 weights in 34 bytes — an `f16` scale, then signed bytes.

use super::blocks::f16_at;

pub const VALUES: usize = 32;
pub const BYTES: usize = 34;

/// Decodes one block.
pub fn decode(block: &[u8; BYTES], out: &mut [f32; VALUES]) {
    let scale = f16_at(block, 0);
    for (value, byte) in out.iter_mut().zip(&block[2..]) {
        *value = f32::from(*byte as i8) * scale;
    }
}
