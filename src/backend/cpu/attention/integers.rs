//! Attention over keys and values that are kept as integers. Queries and weights are rounded to 16-bit integers
//! too, so that sums are exact and one instruction multiplies eight pairs: half the time of floats, which have to
//! be converted first.

#[cfg(not(target_feature = "simd128"))]
use super::integers_portable::{Element, measure_products, mix, round_products, scores};
#[cfg(target_feature = "simd128")]
use super::integers_simd128::{Element, measure_products, mix, round_products, scores};
use super::pass::{HeadPass, ROWS, SPAN};
use crate::backend::cpu::cache::{Block, LayerCache};
use crate::backend::cpu::code_tiles::{Code, CodeTiles, LANES, round, unit_for};
use crate::float::{largest, sum_of_magnitudes};
use std::ops::Range;

/// What tiles are multiplied by.
#[derive(Clone, Copy)]
pub struct Factors<'a> {
    /// Of each row the same number.
    pub codes: &'a [i16],
    /// What one unit of a row is worth, with that of a value's code where there is one for all.
    pub units: &'a [f32],
}

pub struct Integers<'a> {
    pass: &'a HeadPass,
    /// Of a head, padded.
    width: usize,
    /// `[rows, width]`
    queries: Vec<i16>,
    /// What one unit of a row is worth.
    units: Vec<f32>,
}

impl<'a> Integers<'a> {
    pub fn new(pass: &'a HeadPass) -> Self {
        let width = pass.head_dim.next_multiple_of(LANES);
        let rows = pass.queries.len() / pass.head_dim;
        Self { pass, width, queries: vec![0; rows * width], units: vec![0.0; rows] }
    }

    /// `Σ weight · value` for every row, `[rows, width]`. Weights are made from scores in their place, `[rows, end]`.
    pub fn attend(mut self, layer: &LayerCache, to_weights: impl FnOnce(&mut [f32])) -> Vec<f32> {
        match layer.keys[0] {
            Block::Q16(_) => self.round_queries::<i16>(),
            _ => self.round_queries::<i8>(),
        }
        let mut weights = vec![0.0; self.units.len() * self.pass.end];
        for span in self.pass.spans() {
            let ahead = self.pass.after_keys(layer, span.end);
            match &layer.keys[span.start / SPAN] {
                Block::Q16(keys) => self.score_span(keys, ahead, &span, &mut weights),
                Block::Q8(keys) => self.score_span(keys, ahead, &span, &mut weights),
                Block::F32(_) | Block::F16(_) => unreachable!("floats have a pass of their own"),
            }
        }
        to_weights(&mut weights);
        let mut out = vec![0.0; self.queries.len()];
        for span in self.pass.spans() {
            let ahead = self.pass.after_values(layer, span.end);
            match &layer.values[span.start / SPAN] {
                Block::Q16(values) => self.mix_span(values, ahead, &span, &weights, &mut out),
                Block::Q8(values) => self.mix_span(values, ahead, &span, &weights, &mut out),
                Block::F32(_) | Block::F16(_) => unreachable!("floats have a pass of their own"),
            }
        }
        out
    }

    /// Rounds queries as finely as 16 bits and the sums of products, of 32, allow.
    #[inline(never)]
    fn round_queries<C: Code>(&mut self) {
        let head_dim = self.pass.head_dim;
        // Half a code for rounding each.
        let most_in_all = (i32::MAX / i32::from(C::MAX)) as f32 - self.width as f32;
        let queries = self.pass.queries.chunks_exact(head_dim);
        for ((query, unit), codes) in
            queries.zip(&mut self.units).zip(self.queries.chunks_exact_mut(self.width))
        {
            let finest = unit_for(largest(query), i16::MAX);
            *unit = finest.max(sum_of_magnitudes(query) / most_in_all);
            round(query, *unit, codes);
        }
    }

    #[inline(never)]
    fn score_span<C: Element>(
        &self,
        keys: &CodeTiles<C>,
        mut ahead: &[u8],
        span: &Range<usize>,
        out: &mut [f32],
    ) {
        let end = self.pass.end;
        let keys = keys.of_head(self.pass.kv_head, span.len());
        let groups = self.queries.chunks(ROWS * self.width).zip(self.units.chunks(ROWS));
        for (first, (codes, units)) in (0..).step_by(ROWS).zip(groups) {
            scores(Factors { codes, units }, keys, ahead, &mut out[first * end + span.start..], end);
            ahead = &[];
        }
    }

    #[inline(never)]
    fn mix_span<C: Element>(
        &self,
        values: &CodeTiles<C>,
        mut ahead: &[u8],
        span: &Range<usize>,
        weights: &[f32],
        out: &mut [f32],
    ) {
        let end = self.pass.end;
        let values = values.of_head(self.pass.kv_head, span.len());
        let value_units = &values.units[..span.len()];
        for (first, out) in (0..).step_by(ROWS).zip(out.chunks_mut(ROWS * self.width)) {
            let (mut codes, mut units) = ([[0; SPAN]; ROWS], [0.0; ROWS]);
            let rows = weights[first * end..].chunks_exact(end).map(|weights| &weights[span.clone()]);
            for ((weights, codes), unit) in rows.zip(&mut codes).zip(&mut units) {
                *unit = round_weights::<C>(weights, value_units, codes);
            }
            let rows = out.len() / self.width;
            let factors = Factors { codes: codes[..rows].as_flattened(), units: &units[..rows] };
            mix(factors, values, ahead, out);
            ahead = &[];
        }
    }
}

/// Rounds weights, times what a unit of their values is worth. Returns what one unit of the codes is worth.
fn round_weights<C: Code>(weights: &[f32], units: &[f32], codes: &mut [i16; SPAN]) -> f32 {
    match (weights.as_array(), units.as_array()) {
        (Some(weights), Some(units)) => round_span::<C>(weights, units, codes),
        // What is missing weighs nothing.
        _ => round_span::<C>(&padded(weights), &padded(units), codes),
    }
}

#[inline(never)]
fn padded(values: &[f32]) -> [f32; SPAN] {
    let mut all = [0.0; SPAN];
    all[..values.len()].copy_from_slice(values);
    all
}

#[inline(never)]
fn round_span<C: Code>(weights: &[f32; SPAN], units: &[f32; SPAN], codes: &mut [i16; SPAN]) -> f32 {
    /// Smaller than any weight that counts.
    const LEAST: f32 = 1e-30;
    // What a 32-bit sum takes of a span's values, each of which may be the largest, and a half a code for rounding.
    let most_in_all = (i32::MAX / i32::from(C::MAX)) as f32 - SPAN as f32;
    let (sum, most) = measure_products(weights, units);
    let unit = [most / f32::from(i16::MAX), sum / most_in_all]
        .into_iter()
        .fold(LEAST, |max, unit| if unit > max { unit } else { max });
    round_products(weights, units, 1.0 / unit, codes);
    unit
}
