//! Attention over keys and values that are kept as integers. Queries and weights are rounded to 16-bit integers
//! too, so that sums are exact and one instruction multiplies eight pairs: half the time of floats, which have to
//! be converted first.

#[cfg(not(target_feature = "simd128"))]
use super::integers_portable::{Element, measure_products, mix, round_products, scores};
#[cfg(target_feature = "simd128")]
use super::integers_simd128::{Element, measure_products, mix, round_products, scores};
use super::pass::{HeadPass, ROWS, SPAN, Vectors};
use crate::backend::cpu::cache::{Block, CODE_ALIGN, Code, LayerCache, Rounded, round};
use std::ops::Range;

/// Products of a query and a key that one 32-bit sum takes are one of so many.
const SUMS: usize = 4;

/// What the values of a span's positions weigh in some rows.
pub struct Weights {
    pub codes: [[i16; SPAN]; ROWS],
    /// What one unit of a code is worth, that of a value's code included.
    pub units: [f32; ROWS],
}

pub struct Integers<'a> {
    pass: &'a HeadPass,
    /// That of a head, padded.
    width: usize,
    /// Groups of [`ROWS`] rows; in a group, [`CODE_ALIGN`] columns of every row, then the next ones.
    queries: Vec<i16>,
    /// What one unit of a row is worth.
    units: Vec<f32>,
}

impl<'a> Integers<'a> {
    pub fn new(pass: &'a HeadPass) -> Self {
        let width = pass.head_dim.next_multiple_of(CODE_ALIGN);
        let rows = pass.queries.len() / pass.head_dim;
        Self { pass, width, queries: vec![0; rows * width], units: vec![0.0; rows] }
    }

    /// `Σ weight · value` for every row, `[rows, width]`. Weights are made from scores in their place, `[rows, end]`.
    pub fn attend(mut self, layer: &LayerCache, to_weights: impl FnOnce(&mut [f32])) -> Vec<f32> {
        let max = match layer.keys[0] {
            Block::Q16(_) => self.largest_query::<i16>(),
            _ => self.largest_query::<i8>(),
        };
        self.round_queries(max);
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

    /// The largest magnitude of a query's code with which no sum overflows.
    fn largest_query<C: Code>(&self) -> i16 {
        let most = i32::MAX as usize / (usize::from(C::MAX.unsigned_abs()) * self.width.div_ceil(SUMS));
        i16::try_from(most).unwrap_or(i16::MAX)
    }

    #[inline(never)]
    fn round_queries(&mut self, max: i16) {
        let head_dim = self.pass.head_dim;
        let mut codes = vec![0; self.width];
        for (row, query) in self.pass.queries.chunks_exact(head_dim).enumerate() {
            self.units[row] = round(query, max, &mut codes[..head_dim]);
            let group = row / ROWS * ROWS;
            let rows = ROWS.min(self.units.len() - group);
            let places = self.queries[group * self.width..].as_chunks_mut::<CODE_ALIGN>().0;
            let places = places[row - group..].iter_mut().step_by(rows);
            for (place, codes) in places.zip(codes.as_chunks::<CODE_ALIGN>().0) {
                *place = *codes;
            }
        }
    }

    #[inline(never)]
    fn score_span<C: Element>(&self, keys: &Rounded<C>, ahead: &[u8], span: &Range<usize>, out: &mut [f32]) {
        let end = self.pass.end;
        let (data, units) = keys.of_head(self.pass.kv_head, span.len());
        let mut keys = Vectors { data, width: self.width, ahead };
        for (first, queries) in (0..).step_by(ROWS).zip(self.queries.chunks(ROWS * self.width)) {
            scores(queries, keys, &mut out[first * end + span.start..], end);
            keys.ahead = &[];
        }
        for (out, of_row) in out.chunks_exact_mut(end).zip(&self.units) {
            out[span.clone()].iter_mut().zip(units).for_each(|(score, unit)| *score *= unit * of_row);
        }
    }

    #[inline(never)]
    fn mix_span<C: Element>(
        &self,
        values: &Rounded<C>,
        ahead: &[u8],
        span: &Range<usize>,
        weights: &[f32],
        out: &mut [f32],
    ) {
        let end = self.pass.end;
        let (data, units) = values.of_head(self.pass.kv_head, span.len());
        let mut values = Vectors { data, width: self.width, ahead };
        for (first, out) in (0..).step_by(ROWS).zip(out.chunks_mut(ROWS * self.width)) {
            let mut of_rows = Weights { codes: [[0; SPAN]; ROWS], units: [0.0; ROWS] };
            for (row, weights) in weights[first * end..].chunks_exact(end).take(ROWS).enumerate() {
                of_rows.units[row] =
                    round_weights::<C>(&weights[span.clone()], units, &mut of_rows.codes[row]);
            }
            mix(&of_rows, values, out);
            values.ahead = &[];
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
    std::array::from_fn(|i| values.get(i).copied().unwrap_or_default())
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
