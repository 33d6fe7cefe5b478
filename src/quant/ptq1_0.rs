//! `PTQ1_0` of PrismML (type 143): 128 trits in 28 bytes — 24 bytes of five trits (as `TQ1_0` packs
//! them), 2 bytes of four, an `f16` scale.

use super::blocks::f16_at;
use super::tq1_0::spread;

/// Trits in a block.
pub const CODES: usize = 128;
/// Bytes of a block.
pub const BYTES: usize = 28;

/// Decodes one block to [`CODES`] codes; returns the scale.
pub fn decode(block: &[u8; BYTES], codes: &mut [u8; CODES]) -> f32 {
    let (first, rest) = codes.split_at_mut(80);
    spread(&block[..16], first);
    let (second, last) = rest.split_at_mut(40);
    spread(&block[16..24], second);
    spread(&block[24..26], last);
    f16_at(block, 26)
}
