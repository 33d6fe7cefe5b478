//! The integer products of attention in portable Rust.

use super::integers::Factors;
use super::pass::SPAN;
use crate::backend::cpu::code_tiles::{Code, CodeTile, DEPTH, HeadCodes, LANES};
use crate::quant::rounding::round_small;

/// What keys and values are kept as.
pub trait Element: Code + 'static {
    fn widen(self) -> i64;
}

impl Element for i16 {
    fn widen(self) -> i64 {
        self.into()
    }
}

impl Element for i8 {
    fn widen(self) -> i64 {
        self.into()
    }
}

/// Scores of up to [`super::pass::ROWS`] queries with keys. Those of a query start `stride` after those of the one
/// before.
pub fn scores<E: Element>(
    queries: Factors<'_>,
    keys: HeadCodes<'_, E>,
    _: &[u8],
    out: &mut [f32],
    stride: usize,
) {
    let width = queries.codes.len() / queries.units.len();
    let rows = queries.codes.chunks_exact(width).zip(queries.units);
    for (out, (query, unit)) in out.chunks_mut(stride).zip(rows) {
        let groups = keys.tiles.chunks_exact(width / DEPTH).zip(keys.units.chunks(LANES));
        for (out, (tiles, units)) in out[..keys.count].chunks_mut(LANES).zip(groups) {
            let sums = tile_sums(query, tiles.iter());
            out.iter_mut()
                .zip(sums)
                .zip(units)
                .for_each(|((out, sum), key)| *out = sum as f32 * (key * unit));
        }
    }
}

/// `out[row] += unit[row] · Σ weights[row][position] · values[position]`
pub fn mix<E: Element>(weights: Factors<'_>, values: HeadCodes<'_, E>, _: &[u8], out: &mut [f32]) {
    let rows = weights.units.len();
    let width = out.len() / rows;
    let weights = weights.codes.chunks_exact(SPAN).zip(weights.units);
    for (out, (weights, unit)) in out.chunks_exact_mut(width).zip(weights) {
        for (column, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let sums = tile_sums(weights, values.tiles[column..].iter().step_by(width / LANES));
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum as f32 * unit);
        }
    }
}

/// `Σ factor · element` in each lane.
fn tile_sums<'a, E: Element>(factors: &[i16], tiles: impl Iterator<Item = &'a CodeTile<E>>) -> [i64; LANES] {
    let mut sums = [0; LANES];
    for (factors, tile) in factors.as_chunks::<DEPTH>().0.iter().zip(tiles) {
        for (sum, elements) in sums.iter_mut().zip(tile) {
            let products = elements.iter().zip(factors).map(|(a, b)| a.widen() * i64::from(*b));
            *sum += products.sum::<i64>();
        }
    }
    sums
}

/// The sum of products, which are not negative, and the largest.
pub fn measure_products(a: &[f32; SPAN], b: &[f32; SPAN]) -> (f32, f32) {
    let products = || a.iter().zip(b).map(|(a, b)| a * b);
    (products().sum(), products().fold(0.0, f32::max))
}

/// Products times a factor, rounded.
pub fn round_products(a: &[f32; SPAN], b: &[f32; SPAN], factor: f32, codes: &mut [i16; SPAN]) {
    let products = a.iter().zip(b).map(|(a, b)| a * b);
    codes.iter_mut().zip(products).for_each(|(code, product)| *code = round_small(product * factor) as i16);
}
