//! The float products of attention in portable Rust.

use super::pass::{ROWS, SPAN};
use crate::backend::cpu::float::dot;
use crate::quant::halves;

/// What keys and values are kept as.
pub trait Element: Copy {
    /// What products with elements must be multiplied by.
    const FACTOR: f32 = 1.0;

    fn decode(self) -> f32;
}

impl Element for f32 {
    fn decode(self) -> f32 {
        self
    }
}

/// A half's bits.
impl Element for u16 {
    fn decode(self) -> f32 {
        halves::to_single(self)
    }
}

impl Element for i8 {
    fn decode(self) -> f32 {
        f32::from(self)
    }
}

/// Products of up to [`ROWS`] queries with some keys; all are `width` wide. Those of a query start `stride`
/// after those of the one before.
pub fn scores<E: Element>(queries: &[f32], keys: &[E], width: usize, out: &mut [f32], stride: usize) {
    let keys: Vec<f32> = keys.iter().map(|key| key.decode()).collect();
    for (out, query) in out.chunks_mut(stride).zip(queries.chunks_exact(width)) {
        for (out, key) in out.iter_mut().zip(keys.chunks_exact(width)) {
            *out = dot(query, key);
        }
    }
}

/// `out[row] += Σ weights[row][position] · values[position]` for up to [`ROWS`] rows; all vectors are
/// `width` wide.
pub fn mix<E: Element>(weights: &[[f32; SPAN]; ROWS], values: &[E], width: usize, out: &mut [f32]) {
    for (out, weights) in out.chunks_exact_mut(width).zip(weights) {
        for (weight, value) in weights.iter().zip(values.chunks_exact(width)) {
            out.iter_mut().zip(value).for_each(|(out, value)| *out += weight * value.decode());
        }
    }
}
