//! The integer products of attention in portable Rust.

use super::integers::Weights;
use super::pass::{SPAN, Vectors};
use crate::backend::cpu::cache::{CODE_ALIGN, Code};
use crate::quant::rounding::round_small;

/// What keys and values are kept as.
pub trait Element: Code + bytemuck::NoUninit {
    fn widen(self) -> i32;
}

impl Element for i16 {
    fn widen(self) -> i32 {
        self.into()
    }
}

impl Element for i8 {
    fn widen(self) -> i32 {
        self.into()
    }
}

/// Products of up to [`super::pass::ROWS`] queries with some keys: a query's [`CODE_ALIGN`] columns are followed by
/// those of the next one. The products of a query start `stride` after those of the one before.
pub fn scores<E: Element>(queries: &[i16], keys: Vectors<'_, E>, out: &mut [f32], stride: usize) {
    let rows = queries.len() / keys.width;
    let queries = queries.as_chunks::<CODE_ALIGN>().0;
    for (row, out) in out.chunks_mut(stride).take(rows).enumerate() {
        for (out, key) in out.iter_mut().zip(keys.data.chunks_exact(keys.width)) {
            let query = queries[row..].iter().step_by(rows).flatten();
            let products = query.zip(key).map(|(query, key)| i64::from(*query) * i64::from(key.widen()));
            *out = products.sum::<i64>() as f32;
        }
    }
}

/// `out[row] += unit[row] · Σ weights[row][position] · values[position]`
pub fn mix<E: Element>(weights: &Weights, values: Vectors<'_, E>, out: &mut [f32]) {
    let rows = weights.codes.iter().zip(&weights.units);
    let mut sums = vec![0; values.width];
    for (out, (weights, unit)) in out.chunks_exact_mut(values.width).zip(rows) {
        sums.fill(0);
        for (weight, value) in weights.iter().zip(values.data.chunks_exact(values.width)) {
            let weight = i32::from(*weight);
            sums.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value.widen());
        }
        out.iter_mut().zip(&sums).for_each(|(out, sum)| *out += *sum as f32 * unit);
    }
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
