//! `Q6_K` of ggml: 256 weights in 210 bytes — low nibbles, high bit pairs, sixteen signed 8-bit scales
//! and an `f16` super-scale; weight `d · sc · (q - 32)`.

use super::blocks::f16_at;

pub const VALUES: usize = 256;
pub const BYTES: usize = 210;

/// Decodes one block.
pub fn decode(block: &[u8; BYTES], out: &mut [f32; VALUES]) {
    let (low, rest) = block.split_at(128);
    let (high, rest) = rest.split_at(64);
    let d = f16_at(rest, 16);
    for (half, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let (low, high) = (&low[64 * half..][..64], &high[32 * half..][..32]);
        let scales = &rest[8 * half..][..8];
        for (quarter, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let nibbles = &low[32 * (quarter % 2)..][..32];
            let (nibble_shift, pair_shift) = (4 * (quarter / 2), 2 * quarter);
            for (index, value) in out.iter_mut().enumerate() {
                let q = (nibbles[index] >> nibble_shift & 15) | (high[index] >> pair_shift & 3) << 4;
                let scale = d * f32::from(scales[2 * quarter + index / 16] as i8);
                *value = scale * f32::from(q as i8 - 32);
            }
        }
    }
}
