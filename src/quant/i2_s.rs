//! `I2_S` of bitnet.cpp (type 36): two-bit codes over the flat tensor, highest bits first, and one
//! `f32` scale in 32 trailing bytes. Official files interleave four runs of 32 codes in 32 bytes; some
//! ARM builds wrote runs of 16. Nothing in a file tells which.

/// Bytes after the codes; the first four are the scale.
pub const TAIL_BYTES: usize = 32;
/// The number of elements of a tensor is a multiple of this.
pub const BLOCK_CODES: usize = 128;
/// Bytes of [`BLOCK_CODES`] codes.
pub const BLOCK_BYTES: usize = 32;

/// Which of the two interleavings a file has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum I2sLayout {
    /// Runs of 32, as the official files have.
    #[default]
    X86,
    /// Runs of 16, as files quantised by an ARM build may have.
    Arm,
}

/// Decodes one block.
pub fn decode(layout: I2sLayout, block: &[u8; BLOCK_BYTES], codes: &mut [u8; BLOCK_CODES]) {
    match layout {
        I2sLayout::X86 => decode_runs::<32>(block, codes),
        I2sLayout::Arm => decode_runs::<16>(block, codes),
    }
}

/// Runs of a length that is known, for the compiler to use vectors.
fn decode_runs<const RUN: usize>(block: &[u8; BLOCK_BYTES], codes: &mut [u8; BLOCK_CODES]) {
    let runs = codes.as_chunks_mut::<RUN>().0.as_chunks_mut::<4>().0;
    for (bytes, [first, second, third, last]) in block.as_chunks::<RUN>().0.iter().zip(runs) {
        *first = bytes.map(|byte| byte >> 6);
        *second = bytes.map(|byte| byte >> 4 & 3);
        *third = bytes.map(|byte| byte >> 2 & 3);
        *last = bytes.map(|byte| byte & 3);
    }
}

/// The tensor's scale, from its trailing bytes.
pub fn scale(tail: &[u8; TAIL_BYTES]) -> f32 {
    f32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]])
}
