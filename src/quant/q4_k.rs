//! `Q4_K` of ggml: 256 weights in 144 bytes — `f16` super-scales `d` and `dmin`, eight 6-bit scales and
//! minima in 12 bytes, then nibbles; weight `d·s·q - dmin·m`.

use super::blocks::f16_at;

pub const VALUES: usize = 256;
pub const BYTES: usize = 144;

/// Decodes one block.
pub fn decode(block: &[u8; BYTES], out: &mut [f32; VALUES]) {
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    let packed = &block[4..16];
    let chunks = block[16..].as_chunks::<32>().0.iter().zip(out.as_chunks_mut::<64>().0);
    for (chunk, (bytes, out)) in chunks.enumerate() {
        let factors = |j: usize| {
            let (scale, min) = scale_and_min(packed, j);
            (d * f32::from(scale), dmin * f32::from(min))
        };
        let (low_scale, low_min) = factors(2 * chunk);
        let (high_scale, high_min) = factors(2 * chunk + 1);
        let (low, high) = out.split_at_mut(32);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
            *low = low_scale * f32::from(byte & 15) - low_min;
            *high = high_scale * f32::from(byte >> 4) - high_min;
        }
    }
}

/// The 6-bit scale and minimum of sub-block `j`.
fn scale_and_min(packed: &[u8], j: usize) -> (u8, u8) {
    if j < 4 {
        return (packed[j] & 63, packed[j + 4] & 63);
    }
    ((packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4, (packed[j + 4] >> 4) | (packed[j] >> 6) << 4)
}
