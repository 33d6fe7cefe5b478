//! The weight quantiser of W1.58A8 training, for checkpoints that keep the float master weights:
//! `s = 1 / max(mean|w|, 1e-5)`, `code = clamp(round(w·s), -1, 1) + 1`, `weight = (code - 1) / s`, in
//! `f32` over the whole tensor, rounding half to even ("The Era of 1-bit LLMs",
//! <https://arxiv.org/abs/2402.17764>).

use super::{DenseMatrix, Scales, TernaryMatrix};
use crate::Result;
use crate::error::corrupt;

/// Quantises a master weight matrix.
///
/// # Errors
/// `corrupt_file` when the weights are not finite, `out_of_memory` when the codes cannot be allocated.
pub fn quantize(master: &DenseMatrix) -> Result<TernaryMatrix> {
    let (rows, cols) = (master.rows(), master.cols());
    let mut row_values = vec![0f32; cols];
    let mut sum = 0f64;
    for row in 0..rows {
        master.decode_row(row, &mut row_values);
        sum += row_values.iter().map(|v| f64::from(v.abs())).sum::<f64>();
    }
    let mean = (sum / (rows as f64 * cols as f64)) as f32;
    if !mean.is_finite() {
        return Err(corrupt!("the weights contain NaN or infinity"));
    }
    let inverse = 1.0 / mean.max(1e-5);
    let mut matrix = TernaryMatrix::unfilled(rows, cols, Scales::Tensor(1.0 / inverse))?;
    let mut codes = vec![0u8; cols];
    for row in 0..rows {
        master.decode_row(row, &mut row_values);
        for (code, value) in codes.iter_mut().zip(&row_values) {
            *code = ((value * inverse).round_ties_even().clamp(-1.0, 1.0) + 1.0) as u8;
        }
        matrix.put_row(row, &codes);
    }
    Ok(matrix)
}
