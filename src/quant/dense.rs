//! Dense matrices: embeddings, heads, and whole models that are not ternary. Rows stay in the file's
//! encoding and are decoded as they are used, so that loading copies bytes and nothing else.

use super::try_zeroed;
use crate::Result;
use half::{bf16, f16};

/// How a dense row is stored. Block layouts are those of ggml.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DenseEncoding {
    F32,
    F16,
    BF16,
}

impl DenseEncoding {
    /// `(elements, bytes)` of one block; a row is a whole number of blocks.
    pub fn block(self) -> (usize, usize) {
        match self {
            DenseEncoding::F32 => (1, 4),
            DenseEncoding::F16 | DenseEncoding::BF16 => (1, 2),
        }
    }

    /// Bytes of a row of `cols` elements, or `None` where `cols` is not a whole number of blocks.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        let (elements, bytes) = self.block();
        cols.is_multiple_of(elements).then(|| cols / elements * bytes)
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
                    *value = f16::from_le_bytes(*raw).to_f32();
                }
            }
            DenseEncoding::BF16 => {
                for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = bf16::from_le_bytes(*raw).to_f32();
                }
            }
        }
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
        let row_bytes = encoding.row_bytes(cols).ok_or_else(|| {
            crate::error::corrupt!(
                "a row of {cols} elements is not a whole number of {encoding:?} blocks of {}",
                encoding.block().0
            )
        })?;
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

    /// Bytes kept resident.
    pub fn resident_bytes(&self) -> usize {
        self.data.len()
    }

    /// The raw bytes of one row.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.data[row * self.row_bytes..(row + 1) * self.row_bytes]
    }

    /// All bytes, row after row, for filling.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// Decodes one row to `f32`; `out.len() == cols`.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        self.encoding.decode(self.row(row), out);
    }
}
