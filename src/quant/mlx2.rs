//! MLX's affine quantisation at 2 bits: `U32` words of sixteen codes, lowest bits first, and a scale
//! and a bias for every group of columns; `weight = code · scale + bias`. A ternary matrix has
//! `bias = -scale` throughout.

use super::dense::DenseEncoding;
use super::{DenseMatrix, Matrix, Scales, TernaryMatrix};
use crate::Result;

/// Codes in a 32-bit word.
pub const CODES_PER_WORD: usize = 16;

/// Decodes the words of one row (little endian, so that their bytes are in order too).
pub fn decode(words: &[u8], codes: &mut [u8]) {
    super::q2_0::unpack(words, codes);
}

/// Joins codes, scales and biases (row-major `[rows, cols / group]`). Where a bias is not `-scale` the
/// weights are not of the form `(code - 1) · scale`, and the matrix becomes a dense one.
///
/// # Errors
/// `out_of_memory` when the dense matrix cannot be allocated.
pub fn join(mut codes: TernaryMatrix, group: usize, scales: Vec<f32>, biases: &[f32]) -> Result<Matrix> {
    if scales.iter().zip(biases).all(|(scale, bias)| *bias == -scale) {
        let cols = codes.cols();
        let scales = Scales::Group { size: group, values: scales };
        // A zero scale stands for "any" when scales are merged, which holds only where all codes are 1.
        let mergeable = matches!(&scales, Scales::Group { values, .. } if values.iter().all(|v| *v != 0.0));
        codes.set_scales(if mergeable { super::fill::merge(scales, cols) } else { scales });
        return Ok(Matrix::Ternary(codes));
    }
    let (rows, cols) = (codes.rows(), codes.cols());
    let mut dense = DenseMatrix::zeroed(rows, cols, DenseEncoding::F32)?;
    let mut row_codes = vec![0u8; cols];
    for row in 0..rows {
        codes.read_row(row, &mut row_codes);
        let out = dense.row_mut(row).as_chunks_mut::<4>().0;
        for (col, (value, code)) in out.iter_mut().zip(&row_codes).enumerate() {
            let at = row * (cols / group) + col / group;
            *value = (f32::from(*code) * scales[at] + biases[at]).to_le_bytes();
        }
    }
    Ok(Matrix::Dense(dense))
}
