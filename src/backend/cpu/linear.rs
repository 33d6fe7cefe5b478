//! Products of one input with several matrices, as one job of the pool: fewer jobs, and small matrices
//! (keys, values) share the threads with large ones.

use super::input::CpuInput;
use super::pool::Pool;
use super::tensor::CpuTensor;
use super::tiles::{TileShape, for_tiles};
use super::{dense, ternary};
use crate::quant::Matrix;

/// `outs[i] += x · weights[i]ᵀ`; `outs[i]` is `[tokens, rows]`.
pub fn add<const N: usize>(pool: &Pool, weights: [&Matrix; N], x: &CpuInput, outs: [&mut CpuTensor; N]) {
    let codes = weights.iter().any(|weight| matches!(weight, Matrix::Ternary(_))).then(|| x.codes());
    let mut weights_left = weights.iter();
    let outs = outs.map(|out| {
        let weight = weights_left.next().expect("as many outputs as weights");
        let bytes = weight.resident_bytes() / weight.rows().max(1);
        let shape = TileShape::for_columns(pool, out.tokens(), out.width(), bytes);
        (out, shape)
    });
    let values = x.values();
    for_tiles(pool, outs, |which, mut tile| match (weights[which], codes) {
        (Matrix::Ternary(weight), Some(codes)) => ternary::matmul_add(weight, codes, &mut tile),
        (Matrix::Ternary(_), None) => unreachable!("codes are made for ternary weights"),
        (Matrix::Dense(weight), _) => dense::matmul_add(weight, values, &mut tile),
    });
}
