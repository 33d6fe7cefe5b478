//! Dense linears: a row is decoded once and multiplied with every token. One token times a large
//! half-precision matrix (the LM head in decoding) has a kernel of its own in WebAssembly.

#[cfg(target_feature = "simd128")]
use super::dense_simd128;
use super::tensor::CpuTensor;
use super::tiles::Tile;
use crate::float::dot;
use crate::quant::DenseMatrix;

/// `out += x · Wᵀ` for the rows that are the tile's columns.
pub fn matmul_add(weight: &DenseMatrix, x: &CpuTensor, out: &mut Tile<'_>) {
    assert_eq!(weight.cols(), x.width());
    #[cfg(target_feature = "simd128")]
    if x.tokens() == 1 && dense_simd128::gemv_add(weight, out.columns.clone(), x.row(0), out.row_mut(0)) {
        return;
    }
    let first = out.columns.start;
    let mut decoded = vec![0.0; weight.cols()];
    for row in out.columns.clone() {
        weight.decode_row(row, &mut decoded);
        for token in 0..x.tokens() {
            out.row_mut(token)[row - first] += dot(&decoded, x.row(token));
        }
    }
}
