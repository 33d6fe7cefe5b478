//! The packed `U8` weights of Hugging Face's `bitnet` quantisation: `[out / 4, in]` bytes, byte
//! `(r, c)` holding rows `r`, `r + out/4`, `r + 2·out/4` and `r + 3·out/4` of column `c`, lowest bits
//! first.

/// Rows that share one byte.
pub const ROWS_PER_BYTE: usize = 4;

/// Extracts the codes of the `quarter`-th (0–3) of the four rows that `packed` holds.
pub fn decode(packed: &[u8], quarter: usize, codes: &mut [u8]) {
    let shift = 2 * quarter;
    for (code, byte) in codes.iter_mut().zip(packed) {
        *code = (byte >> shift) & 3;
    }
}
