//! Dense matrices: embeddings, heads, and whole models that are not ternary. Rows stay in the file's
//! encoding and are decoded as they are used, so that loading copies bytes and nothing else.

use super::blocks::f16_at;
use super::{halves, q4_0, q4_1, q4_k, q6_k, q8_0, try_zeroed};
use crate::Result;
use half::bf16;

/// How a dense row is stored. Block layouts are those of ggml.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DenseEncoding {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q4K,
    Q6K,
}

impl DenseEncoding {
    /// `(elements, bytes)` of one block; a row is a whole number of blocks.
    pub fn block(self) -> (usize, usize) {
        match self {
            DenseEncoding::F32 => (1, 4),
            DenseEncoding::F16 | DenseEncoding::BF16 => (1, 2),
            DenseEncoding::Q8_0 => (q8_0::VALUES, q8_0::BYTES),
            DenseEncoding::Q4_0 => (q4_0::VALUES, q4_0::BYTES),
            DenseEncoding::Q4_1 => (q4_1::VALUES, q4_1::BYTES),
            DenseEncoding::Q4K => (q4_k::VALUES, q4_k::BYTES),
            DenseEncoding::Q6K => (q6_k::VALUES, q6_k::BYTES),
        }
    }

    /// Bytes of a row of `cols` elements, or `None` where `cols` is not a whole number of blocks.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        let (elements, bytes) = self.block();
        cols.is_multiple_of(elements).then(|| cols / elements * bytes)
    }

    /// [`Self::row_bytes`] of a row that must be a whole number of blocks.
    ///
    /// # Errors
    /// `corrupt_file` when it is not.
    pub fn whole_row_bytes(self, cols: usize) -> Result<usize> {
        self.row_bytes(cols).ok_or_else(|| {
            crate::error::corrupt!(
                "a row of {cols} elements is not a whole number of {self:?} blocks of {}",
                self.block().0
            )
        })
    }

    /// Decodes consecutive blocks: `out.len()` elements from the same number of blocks' bytes.
    pub fn decode(self, bytes: &[u8], out: &mut [f32]) {
        match self {
            DenseEncoding::F32 => {
                for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *value = f32::from_le_bytes(*raw);
                }
            }
            DenseEncoding::F16 => {
                for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = halves::to_single(u16::from_le_bytes(*raw));
                }
            }
            DenseEncoding::BF16 => {
                for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = bf16::from_le_bytes(*raw).to_f32();
                }
            }
            DenseEncoding::Q8_0 => each_block(bytes, out, q8_0::decode),
            DenseEncoding::Q4_0 => each_block(bytes, out, q4_0::decode),
            DenseEncoding::Q4_1 => each_block(bytes, out, q4_1::decode),
            DenseEncoding::Q4K => each_block(bytes, out, q4_k::decode),
            DenseEncoding::Q6K => each_block(bytes, out, q6_k::decode),
        }
    }

    /// Encodes `values` where a value is kept by itself (`F32`, `F16`, `BF16`); the inverse of
    /// [`Self::decode`]. `false`, and nothing is written, for block encodings.
    pub fn encode(self, values: &[f32], bytes: &mut [u8]) -> bool {
        match self {
            DenseEncoding::F32 => {
                for (raw, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                    *raw = value.to_le_bytes();
                }
            }
            DenseEncoding::F16 => {
                for (raw, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                    *raw = halves::from_single(*value).to_le_bytes();
                }
            }
            DenseEncoding::BF16 => {
                for (raw, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                    *raw = bf16::from_f32(*value).to_le_bytes();
                }
            }
            _ => return false,
        }
        true
    }

    /// Whether the scales (and minima) of all blocks in `bytes` are finite.
    pub fn scales_are_finite(self, bytes: &[u8]) -> bool {
        let at: &[usize] = match self {
            DenseEncoding::F32 | DenseEncoding::F16 | DenseEncoding::BF16 => &[],
            DenseEncoding::Q8_0 | DenseEncoding::Q4_0 => &[0],
            DenseEncoding::Q4_1 | DenseEncoding::Q4K => &[0, 2],
            DenseEncoding::Q6K => &[q6_k::BYTES - 2],
        };
        let mut blocks = bytes.chunks_exact(self.block().1);
        at.is_empty() || blocks.all(|block| at.iter().all(|at| f16_at(block, *at).is_finite()))
    }
}

fn each_block<const BYTES: usize, const VALUES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; VALUES]),
) {
    for (block, values) in bytes.as_chunks::<BYTES>().0.iter().zip(out.as_chunks_mut::<VALUES>().0) {
        decode(block, values);
    }
}

/// A row-major `[rows, cols]` matrix in one [`DenseEncoding`].
#[derive(Debug, Clone)]
pub struct DenseMatrix {
    rows: usize,
    cols: usize,
    encoding: DenseEncoding,
    row_bytes: usize,
    data: Vec<u8>,
}

impl DenseMatrix {
    /// A matrix of zero bytes, to be filled through [`Self::bytes_mut`].
    ///
    /// # Errors
    /// `corrupt_file` when a row is not a whole number of blocks, `out_of_memory` when it does not fit.
    pub fn zeroed(rows: usize, cols: usize, encoding: DenseEncoding) -> Result<Self> {
        let row_bytes = encoding.whole_row_bytes(cols)?;
        let data = try_zeroed(rows.saturating_mul(row_bytes), "dense weights")?;
        Ok(Self { rows, cols, encoding, row_bytes, data })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn encoding(&self) -> DenseEncoding {
        self.encoding
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Bytes kept resident.
    pub fn resident_bytes(&self) -> usize {
        self.data.len()
    }

    /// The raw bytes of one row.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.data[row * self.row_bytes..(row + 1) * self.row_bytes]
    }

    /// The raw bytes of one row, for filling.
    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.data[row * self.row_bytes..(row + 1) * self.row_bytes]
    }

    /// All bytes, row after row, for filling.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// The matrix as `F32`, every weight multiplied by `factor`.
    ///
    /// # Errors
    /// `out_of_memory`.
    pub fn scaled(&self, factor: f32) -> Result<Self> {
        let mut scaled = Self::zeroed(self.rows, self.cols, DenseEncoding::F32)?;
        let mut values = vec![0f32; self.cols];
        for row in 0..self.rows {
            self.decode_row(row, &mut values);
            values.iter_mut().for_each(|value| *value *= factor);
            DenseEncoding::F32.encode(&values, scaled.row_mut(row));
        }
        Ok(scaled)
    }

    /// Decodes one row to `f32`; `out.len() == cols`.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        self.encoding.decode(self.row(row), out);
    }
}
