//! Dense linears: a row is decoded once and multiplied with every token.

use super::float::dot;
use super::tensor::CpuTensor;
use crate::quant::DenseMatrix;

/// `out += x · Wᵀ`; `out` is `[tokens, rows]`.
pub fn matmul_add(weight: &DenseMatrix, x: &CpuTensor, out: &mut CpuTensor) {
    assert_eq!(weight.cols(), x.width());
    let mut decoded = vec![0.0; weight.cols()];
    for row in 0..weight.rows() {
        weight.decode_row(row, &mut decoded);
        for token in 0..x.tokens() {
            out.row_mut(token)[row] += dot(&decoded, x.row(token));
        }
    }
}
