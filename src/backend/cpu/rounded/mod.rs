//! Linears over rows of 8-bit or 4-bit weights: the LM head of a large vocabulary. Activations become
//! integers, whose rounding (2⁻¹⁴ of the largest, or less) is far below that of the weights, so that sums
//! of columns that share a scale are exact and the same on every device.

mod int4;
mod int8;

use super::tensor::CpuTensor;
use super::tiles::Tile;
use crate::float::largest;
use std::ops::Range;

/// Rows of one call of a kernel.
pub const ROWS: usize = 4;
/// Rows of a block. Its quarters are read side by side, since one core keeps more cache misses in flight
/// over several addresses.
const BLOCK_ROWS: usize = 64;

/// A matrix of rounded weights.
pub trait RoundedRows {
    /// One token's integers as the kernel wants them.
    type Vector;
    /// Largest magnitude of an activation.
    const MAX: f32;

    /// `(width, padded width)`
    fn cols(&self) -> (usize, usize);

    /// Takes one integer a padded column.
    fn vector(integers: &[i16]) -> Self::Vector;

    /// `row · x` of some rows.
    fn products(&self, rows: [usize; ROWS], x: &Self::Vector) -> [f64; ROWS];
}

/// A product that is ready to be computed, rows by rows.
pub struct Product<'a, W: RoundedRows> {
    weight: &'a W,
    /// A token's integers, and what one unit is the inverse of.
    vectors: Vec<(W::Vector, f64)>,
}

impl<'a, W: RoundedRows> Product<'a, W> {
    pub fn new(weight: &'a W, x: &CpuTensor) -> Self {
        let (cols, padded) = weight.cols();
        assert_eq!(cols, x.width());
        let vectors = (0..x.tokens()).map(|token| {
            let (integers, scale) = round(x.row(token), padded, W::MAX);
            (W::vector(&integers), scale)
        });
        Self { weight, vectors: vectors.collect() }
    }

    /// `out += x · Wᵀ` for the rows that are the tile's columns.
    pub fn add(&self, out: &mut Tile<'_>) {
        for first in out.columns.clone().step_by(BLOCK_ROWS) {
            self.add_block(first..out.columns.end.min(first + BLOCK_ROWS), out);
        }
    }

    fn add_block(&self, rows: Range<usize>, out: &mut Tile<'_>) {
        let quarter = rows.len().div_ceil(ROWS);
        let block = rows.start - out.columns.start..rows.end - out.columns.start;
        for index in 0..quarter {
            let places: [usize; ROWS] = std::array::from_fn(|part| part * quarter + index);
            // Where a block has no four quarters, its last row stands in for those that it lacks.
            let rows_here = places.map(|place| (rows.start + place).min(rows.end - 1));
            for (token, (vector, scale)) in self.vectors.iter().enumerate() {
                let products = self.weight.products(rows_here, vector);
                let out = &mut out.row_mut(token)[block.clone()];
                for (place, product) in places.into_iter().zip(products) {
                    if let Some(out) = out.get_mut(place) {
                        *out += (product / scale) as f32;
                    }
                }
            }
        }
    }
}

/// One token's integers, at most `limit` in magnitude, and what one unit is the inverse of.
fn round(x: &[f32], padded: usize, limit: f32) -> (Vec<i16>, f64) {
    let scale = limit / largest(x).max(f32::MIN_POSITIVE * limit);
    let integers = x.iter().map(|x| (x * scale).round_ties_even() as i16);
    let mut integers: Vec<i16> = integers.collect();
    integers.resize(padded, 0);
    (integers, f64::from(scale))
}
