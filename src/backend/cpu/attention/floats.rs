//! Attention over keys and values that are kept as floats.

#[cfg(not(target_feature = "simd128"))]
use super::floats_portable::{Element, arrange, mix, restore, scores};
#[cfg(target_feature = "simd128")]
use super::floats_simd128::{Element, arrange, mix, restore, scores};
use super::pass::{HeadPass, ROWS, SPAN, Vectors};
use crate::backend::cpu::cache::{Block, LayerCache};
use crate::quant::halves;
use std::ops::Range;

/// Kernels take vectors of a multiple of this; others are decoded and padded with zeros.
pub const LANES: usize = 8;
/// Queries below this can carry [`Element::FACTOR`] without overflow.
const QUERY_LIMIT: f32 = 60_000.0;

/// What the values of a span's positions weigh in each row.
pub type Weights = [[f32; SPAN]; ROWS];

pub struct Floats<'a> {
    pass: &'a HeadPass,
    /// That of a head, padded.
    width: usize,
    /// Whether vectors are decoded before they meet the kernels.
    decodes: bool,
    /// `[rows, width]`
    queries: Vec<f32>,
}

/// `[positions, width]`
enum Data<'a> {
    F32(&'a [f32]),
    F16(&'a [u16]),
}

impl<'a> Floats<'a> {
    pub fn new(pass: &'a HeadPass) -> Self {
        let width = pass.head_dim.next_multiple_of(LANES);
        let decodes = width != pass.head_dim || !pass.queries.iter().all(|query| query.abs() < QUERY_LIMIT);
        let mut queries = vec![0.0; pass.queries.len() / pass.head_dim * width];
        for (padded, query) in queries.chunks_exact_mut(width).zip(pass.queries.chunks_exact(pass.head_dim)) {
            padded[..pass.head_dim].copy_from_slice(query);
        }
        Self { pass, width, decodes, queries }
    }

    /// `Σ weight · value` for every row, `[rows, width]`. Weights are made from scores in their place, `[rows, end]`.
    pub fn attend(mut self, layer: &LayerCache, to_weights: impl FnOnce(&mut [f32])) -> Vec<f32> {
        let mut weights = self.scores(layer);
        to_weights(&mut weights);
        self.mix(layer, &weights)
    }

    fn are_halves(&self, blocks: &[Block]) -> bool {
        !self.decodes && matches!(blocks[0], Block::F16(_))
    }

    fn scores(&mut self, layer: &LayerCache) -> Vec<f32> {
        let are_halves = self.are_halves(&layer.keys);
        for queries in self.queries.chunks_mut(ROWS * self.width) {
            match are_halves {
                true => arrange::<u16>(queries, self.width),
                false => arrange::<f32>(queries, self.width),
            }
        }
        let mut out = vec![0.0; self.queries.len() / self.width * self.pass.end];
        let mut decoded = Vec::new();
        for span in self.pass.spans() {
            let ahead = self.pass.after_keys(layer, span.end);
            match self.data(&layer.keys, &span, &mut decoded) {
                Data::F32(data) => self.score_span(self.vectors(data, ahead), span.start, &mut out),
                Data::F16(data) => self.score_span(self.vectors(data, ahead), span.start, &mut out),
            }
        }
        out
    }

    fn score_span<E: Element>(&self, mut keys: Vectors<'_, E>, start: usize, out: &mut [f32]) {
        let end = self.pass.end;
        for (first, queries) in (0..).step_by(ROWS).zip(self.queries.chunks(ROWS * self.width)) {
            scores(queries, keys, &mut out[first * end + start..], end);
            keys.ahead = &[];
        }
    }

    fn mix(&self, layer: &LayerCache, weights: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.queries.len()];
        let mut decoded = Vec::new();
        for span in self.pass.spans() {
            let ahead = self.pass.after_values(layer, span.end);
            match self.data(&layer.values, &span, &mut decoded) {
                Data::F32(data) => self.mix_span(self.vectors(data, ahead), weights, &span, &mut out),
                Data::F16(data) => self.mix_span(self.vectors(data, ahead), weights, &span, &mut out),
            }
        }
        match self.are_halves(&layer.values) {
            true => restore::<u16>(&mut out),
            false => restore::<f32>(&mut out),
        }
        out
    }

    fn mix_span<E: Element>(
        &self,
        mut values: Vectors<'_, E>,
        weights: &[f32],
        span: &Range<usize>,
        out: &mut [f32],
    ) {
        let end = self.pass.end;
        for (first, out) in (0..).step_by(ROWS).zip(out.chunks_mut(ROWS * self.width)) {
            let mut of_rows: Weights = [[0.0; SPAN]; ROWS];
            for (row, weights) in of_rows.iter_mut().zip(weights[first * end..].chunks_exact(end)) {
                let weights = &weights[span.clone()];
                row.iter_mut().zip(weights).for_each(|(row, weight)| *row = weight * E::FACTOR);
            }
            mix(&of_rows, values, out);
            values.ahead = &[];
        }
    }

    fn vectors<'b, E>(&self, data: &'b [E], ahead: &'b [u8]) -> Vectors<'b, E> {
        Vectors { data, width: self.width, ahead }
    }

    /// The head's vectors at `span`, as kernels take them.
    fn data<'b>(&self, blocks: &'b [Block], span: &Range<usize>, decoded: &'b mut Vec<f32>) -> Data<'b> {
        let pass = self.pass;
        match &blocks[span.start / SPAN] {
            Block::F32(data) if !self.decodes => Data::F32(pass.floats(data, span.len())),
            Block::F16(data) if !self.decodes => Data::F16(pass.floats(data, span.len())),
            Block::F32(data) => {
                let vectors = pass.floats(data, span.len()).chunks_exact(pass.head_dim);
                Data::F32(self.decode(vectors, decoded, |vector, out| out.copy_from_slice(vector)))
            }
            Block::F16(data) => {
                let vectors = pass.floats(data, span.len()).chunks_exact(pass.head_dim);
                Data::F32(self.decode(vectors, decoded, halves::decode_finite))
            }
            Block::Q16(_) | Block::Q8(_) => unreachable!("integers have a pass of their own"),
        }
    }

    fn decode<'b, E: 'b>(
        &self,
        vectors: std::slice::ChunksExact<'_, E>,
        decoded: &'b mut Vec<f32>,
        decode: impl Fn(&[E], &mut [f32]),
    ) -> &'b [f32] {
        decoded.clear();
        decoded.resize(vectors.len() * self.width, 0.0);
        for (out, vector) in decoded.chunks_exact_mut(self.width).zip(vectors) {
            decode(vector, &mut out[..vector.len()]);
        }
        decoded
    }
}
