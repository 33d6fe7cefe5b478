//! Products of one input with several matrices, as one job of the pool: fewer jobs, and small matrices
//! (keys, values) share the threads with large ones.

use super::input::CpuInput;
use super::pool::Pool;
use super::tensor::CpuTensor;
use super::tiles::{Tile, TileShape, for_tiles};
use super::{dense, rounded, ternary};
use crate::quant::{DenseMatrix, Int4Matrix, Int8Matrix, Matrix};

/// A product that is ready to be computed, rows by rows.
enum Product<'a> {
    Ternary(ternary::Product<'a>),
    Int8(rounded::Product<'a, Int8Matrix>),
    Int4(rounded::Product<'a, Int4Matrix>),
    Dense(&'a DenseMatrix, &'a CpuTensor),
}

impl<'a> Product<'a> {
    fn new(pool: &Pool, weight: &'a Matrix, x: &'a CpuInput) -> Self {
        match weight {
            Matrix::Ternary(weight) => Self::Ternary(ternary::Product::new(weight, x.codes(pool))),
            Matrix::Int8(weight) => Self::Int8(rounded::Product::new(weight, x.values(pool))),
            Matrix::Int4(weight) => Self::Int4(rounded::Product::new(weight, x.values(pool))),
            Matrix::Dense(weight) => Self::Dense(weight, x.values(pool)),
        }
    }

    fn add(&self, out: &mut Tile<'_>) {
        match self {
            Self::Ternary(product) => product.add(out),
            Self::Int8(product) => product.add(out),
            Self::Int4(product) => product.add(out),
            Self::Dense(weight, x) => dense::matmul_add(weight, x, out),
        }
    }
}

/// `outs[i] += x · weights[i]ᵀ`; `outs[i]` is `[tokens, rows]`.
pub fn add<const N: usize>(pool: &Pool, weights: [&Matrix; N], x: &CpuInput, outs: [&mut CpuTensor; N]) {
    let products = weights.map(|weight| Product::new(pool, weight, x));
    let mut weights = weights.into_iter();
    let outs = outs.map(|out| {
        let row_bytes = weights.next().map_or(0, |weight| weight.resident_bytes() / weight.rows().max(1));
        let shape = TileShape::for_columns(pool, out.tokens(), out.width(), row_bytes);
        (out, shape)
    });
    for_tiles(pool, outs, |which, mut tile| products[which].add(&mut tile));
}
