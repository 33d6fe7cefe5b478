//! `TQ1_0` of ggml (type 34): 256 trits in 54 bytes — 48 bytes of five trits, 4 bytes of four, an
//! `f16` scale. A byte is a base-3 fraction, first trit most significant.

use super::blocks::f16_at;

/// Trits in a block.
pub const CODES: usize = 256;
/// Bytes of a block.
pub const BYTES: usize = 54;

const POWERS: [u8; 5] = [1, 3, 9, 27, 81];

/// Trit `index` (0 is the most significant) of a fixed-point base-3 byte.
#[inline]
pub(super) fn trit(byte: u8, index: usize) -> u8 {
    ((u16::from(byte.wrapping_mul(POWERS[index])) * 3) >> 8) as u8
}

/// Decodes one block to [`CODES`] codes; returns the scale.
pub fn decode(block: &[u8; BYTES], codes: &mut [u8; CODES]) -> f32 {
    let (five, four, tail) = (&block[..48], &block[48..52], &block[52..]);
    let (first, rest) = codes.split_at_mut(160);
    spread(&five[..32], first);
    let (second, last) = rest.split_at_mut(80);
    spread(&five[32..], second);
    spread(four, last);
    f16_at(tail, 0)
}

/// Trit `n` of byte `m` becomes code `n · bytes.len() + m`, for as many trits as `codes` has room for.
pub(super) fn spread(bytes: &[u8], codes: &mut [u8]) {
    for (index, run) in codes.chunks_exact_mut(bytes.len()).enumerate() {
        for (code, byte) in run.iter_mut().zip(bytes) {
            *code = trit(*byte, index);
        }
    }
}
