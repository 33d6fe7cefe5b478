//! Linears over rows of 8-bit or 4-bit weights: the LM head of a large vocabulary. Activations become
//! integers, whose rounding (2⁻¹⁴ of the largest, or less) is far below that of the weights, so that sums
//! of columns that share a scale are exact and the same on every device.

mod int4;
mod int8;

use super::tensor::CpuTensor;
use super::tiles::Tile;
use crate::float::largest;
use std::ops::Range;

/// Rows of a block. Its quarters are read side by side, since one core keeps more cache misses in flight
/// over several addresses.
const BLOCK_ROWS: usize = 64;
/// Places at which one call of a kernel reads.
pub const QUARTERS: usize = 4;

/// A matrix of rounded weights.
pub trait RoundedRows {
    /// One token's integers as the kernel wants them.
    type Vector;
    /// Largest magnitude of an activation.
    const MAX: f32;
    /// The products of rows that are read together, a power of two that divides a quarter of a block.
    type Products: AsRef<[f64]>;
    const ROWS: usize;

    /// `(width, padded width)`
    fn cols(&self) -> (usize, usize);

    /// Takes one integer a padded column.
    fn vector(integers: &[i16]) -> Self::Vector;

    /// `row · x` of the rows that are read together from each of some rows on, multiples of [`Self::ROWS`].
    fn products(&self, rows: [usize; QUARTERS], x: &Self::Vector) -> [Self::Products; QUARTERS];
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
        let quarter = rows.len().div_ceil(QUARTERS).next_multiple_of(W::ROWS);
        let block = rows.start - out.columns.start..rows.end - out.columns.start;
        let last = (rows.end - 1) / W::ROWS * W::ROWS;
        for index in (0..quarter).step_by(W::ROWS) {
            let places: [usize; QUARTERS] = std::array::from_fn(|part| part * quarter + index);
            // Where a block has no four quarters, its last rows stand in for those that it lacks.
            let rows_here = places.map(|place| (rows.start + place).min(last));
            for (token, (vector, scale)) in self.vectors.iter().enumerate() {
                let products = self.weight.products(rows_here, vector);
                let out = &mut out.row_mut(token)[block.clone()];
                for (place, products) in places.into_iter().zip(&products) {
                    let out = out.iter_mut().skip(place);
                    out.zip(products.as_ref()).for_each(|(out, product)| *out += (product / scale) as f32);
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
