//! Linears over 8-bit rows: the LM head of a large vocabulary. Activations become 14-bit integers, so that
//! sums are exact and the same on every device; their rounding (2⁻¹⁴ of the largest) is far below that of
//! the weights.

use super::int8_dot::{ROWS, Vector, dot_rows};
use super::tensor::CpuTensor;
use super::tiles::Tile;
use crate::quant::Int8Matrix;
use std::ops::Range;

/// Largest magnitude of an activation.
const MAX: f32 = 8191.0;
/// Rows of a block. Its quarters are read side by side, since one core keeps more cache misses in flight
/// over several addresses.
const BLOCK_ROWS: usize = 64;

/// A product that is ready to be computed, rows by rows.
pub struct Product<'a> {
    weight: &'a Int8Matrix,
    /// A token's integers, and what one unit is the inverse of.
    vectors: Vec<(Vector, f64)>,
}

impl<'a> Product<'a> {
    pub fn new(weight: &'a Int8Matrix, x: &CpuTensor) -> Self {
        assert_eq!(weight.cols(), x.width());
        let vectors = (0..x.tokens()).map(|token| round(x.row(token), weight.padded_cols())).collect();
        Self { weight, vectors }
    }

    /// `out += x · Wᵀ` for the rows that are the tile's columns.
    pub fn add(&self, out: &mut Tile<'_>) {
        for first in out.columns.clone().step_by(BLOCK_ROWS) {
            self.add_block(first..out.columns.end.min(first + BLOCK_ROWS), out);
        }
    }

    fn add_block(&self, rows: Range<usize>, out: &mut Tile<'_>) {
        let Self { weight, vectors } = self;
        let quarter = rows.len().div_ceil(ROWS);
        let block = rows.start - out.columns.start..rows.end - out.columns.start;
        for index in 0..quarter {
            let places: [usize; ROWS] = std::array::from_fn(|part| part * quarter + index);
            // Where a block has no four quarters, its last row stands in for those that it lacks.
            let rows_here = places.map(|place| (rows.start + place).min(rows.end - 1));
            for (token, (vector, scale)) in vectors.iter().enumerate() {
                let bytes = rows_here.map(|row| weight.row(row));
                let sums = dot_rows(bytes, rows_here.map(|row| weight.sum(row)), vector);
                let out = &mut out.row_mut(token)[block.clone()];
                for ((place, row), sum) in places.into_iter().zip(rows_here).zip(sums) {
                    if let Some(out) = out.get_mut(place) {
                        *out += (sum as f64 / scale * f64::from(weight.scale(row))) as f32;
                    }
                }
            }
        }
    }
}

/// The integers of one token, and what one unit is the inverse of.
fn round(x: &[f32], padded: usize) -> (Vector, f64) {
    let max = x.iter().fold(0.0f32, |max, x| if x.abs() > max { x.abs() } else { max });
    let scale = MAX / max.max(f32::MIN_POSITIVE * MAX);
    let integers = x.iter().map(|x| (x * scale).round_ties_even() as i16);
    let mut integers: Vec<i16> = integers.collect();
    integers.resize(padded, 0);
    (Vector::new(&integers), f64::from(scale))
}
