//! The float products of attention in portable Rust.

use super::floats::Weights;
use super::pass::Vectors;
use crate::float::dot;
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

/// Nothing to do: these kernels have no order of their own.
pub fn arrange<E: Element>(_queries: &mut [f32], _width: usize) {}

/// Nothing to do: see [`arrange`].
pub fn restore<E: Element>(_sums: &mut [f32]) {}

/// Products of some queries with some keys. Those of a query start `stride` after those of the one before.
pub fn scores<E: Element>(queries: &[f32], keys: Vectors<'_, E>, out: &mut [f32], stride: usize) {
    let decoded: Vec<f32> = keys.data.iter().map(|key| key.decode()).collect();
    for (out, query) in out.chunks_mut(stride).zip(queries.chunks_exact(keys.width)) {
        for (out, key) in out.iter_mut().zip(decoded.chunks_exact(keys.width)) {
            *out = dot(query, key);
        }
    }
}

/// `out[row] += Σ weights[row][position] · values[position]`
pub fn mix<E: Element>(weights: &Weights, values: Vectors<'_, E>, out: &mut [f32]) {
    for (out, weights) in out.chunks_exact_mut(values.width).zip(weights) {
        for (weight, value) in weights.iter().zip(values.data.chunks_exact(values.width)) {
            out.iter_mut().zip(value).for_each(|(out, value)| *out += weight * value.decode());
        }
    }
}
