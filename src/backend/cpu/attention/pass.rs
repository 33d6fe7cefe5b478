//! Attention of some tokens in all query heads that share one key/value head. A row is a query head of a
//! token; rows meet every position up to the last token's, and what a row may not see weighs nothing.

#[cfg(not(target_feature = "simd128"))]
use super::portable::{Element, mix, scores};
#[cfg(target_feature = "simd128")]
use super::simd128::{Element, mix, scores};
use crate::backend::cpu::cache::{BLOCK_TOKENS, Block, LayerCache};
use crate::backend::cpu::float::softmax;
use crate::backend::cpu::tensor::CpuTensor;
use crate::backend::cpu::tiles::Tile;
use std::ops::Range;

/// Positions that meet all rows before the next ones do: their keys stay in the first-level cache.
pub const SPAN: usize = 16;
/// Rows that meet a key or value at a time.
pub const ROWS: usize = 4;
/// Kernels take vectors of a multiple of this; others are decoded and padded with zeros.
pub const LANES: usize = 8;
/// Queries below this can carry [`Element::FACTOR`] without overflow.
const QUERY_LIMIT: f32 = 60_000.0;

const _: () = assert!(BLOCK_TOKENS.is_multiple_of(SPAN));

pub struct HeadPass {
    head_dim: usize,
    /// `head_dim`, padded.
    width: usize,
    /// Whether vectors are decoded before they meet the kernels.
    decodes: bool,
    /// Position of the first token of the pass.
    start: usize,
    tokens: Range<usize>,
    /// The columns of the query heads.
    columns: Range<usize>,
    /// `[rows, width]`
    queries: Vec<f32>,
}

impl HeadPass {
    pub fn new(
        head_dim: usize,
        start: usize,
        columns: Range<usize>,
        tile: &Tile<'_>,
        query: &CpuTensor,
    ) -> Self {
        let width = head_dim.next_multiple_of(LANES);
        let tokens = tile.tokens.clone();
        let mut queries = vec![0.0; tokens.len() * columns.len() / head_dim * width];
        let scale = 1.0 / (head_dim as f32).sqrt();
        let heads = tokens.clone().flat_map(|token| query.row(token)[columns.clone()].chunks_exact(head_dim));
        for (row, head) in queries.chunks_exact_mut(width).zip(heads) {
            row.iter_mut().zip(head).for_each(|(row, query)| *row = query * scale);
        }
        let decodes = width != head_dim || !queries.iter().all(|query| query.abs() < QUERY_LIMIT);
        Self { head_dim, width, decodes, start, tokens, columns, queries }
    }

    pub fn run(mut self, layer: &LayerCache, out: &mut Tile<'_>) {
        let end = self.start + self.tokens.end;
        let heads = self.columns.len() / self.head_dim;
        let mut weights = self.scores(&layer.keys, end);
        for (row, weights) in weights.chunks_exact_mut(end).enumerate() {
            let (seen, unseen) = weights.split_at_mut(self.start + self.tokens.start + row / heads + 1);
            softmax(seen);
            unseen.fill(0.0);
        }
        let mixed = self.mix(&layer.values, &weights, end);
        let mut rows = mixed.chunks_exact(self.width);
        let first = self.columns.start - out.columns.start;
        for token in self.tokens.clone() {
            let out = &mut out.row_mut(token)[first..first + self.columns.len()];
            for (out, row) in out.chunks_exact_mut(self.head_dim).zip(&mut rows) {
                out.copy_from_slice(&row[..self.head_dim]);
            }
        }
    }

    fn kv_head(&self) -> usize {
        self.columns.start / self.columns.len()
    }

    /// `query · key` for every row and position, `[rows, end]`.
    fn scores(&mut self, keys: &[Block], end: usize) -> Vec<f32> {
        let factor = match keys[0] {
            _ if self.decodes => 1.0,
            Block::F32(_) => f32::FACTOR,
            Block::F16(_) => u16::FACTOR,
            Block::Q8 { .. } => i8::FACTOR,
        };
        self.queries.iter_mut().for_each(|query| *query *= factor);
        let mut out = vec![0.0; self.queries.len() / self.width * end];
        let mut decoded = Vec::new();
        for span in spans(end) {
            match self.vectors(keys, &span, &mut decoded) {
                Vectors::F32(keys) => self.score_span(keys, &span, end, &mut out),
                Vectors::F16(keys) => self.score_span(keys, &span, end, &mut out),
                Vectors::Q8 { codes, scales } => {
                    self.score_span(codes, &span, end, &mut out);
                    for out in out.chunks_exact_mut(end) {
                        out[span.clone()].iter_mut().zip(scales).for_each(|(score, scale)| *score *= scale);
                    }
                }
            }
        }
        out
    }

    fn score_span<E: Element>(&self, keys: &[E], span: &Range<usize>, end: usize, out: &mut [f32]) {
        for (first, queries) in (0..).step_by(ROWS).zip(self.queries.chunks(ROWS * self.width)) {
            scores(queries, keys, self.width, &mut out[first * end + span.start..], end);
        }
    }

    /// `Σ weight · value` for every row, `[rows, width]`.
    fn mix(&self, values: &[Block], weights: &[f32], end: usize) -> Vec<f32> {
        let mut out = vec![0.0; self.queries.len()];
        let mut decoded = Vec::new();
        for span in spans(end) {
            match self.vectors(values, &span, &mut decoded) {
                Vectors::F32(values) => self.mix_span(values, |_| f32::FACTOR, weights, &span, end, &mut out),
                Vectors::F16(values) => self.mix_span(values, |_| u16::FACTOR, weights, &span, end, &mut out),
                Vectors::Q8 { codes, scales } => {
                    self.mix_span(codes, |index| scales[index] * i8::FACTOR, weights, &span, end, &mut out);
                }
            }
        }
        out
    }

    fn mix_span<E: Element>(
        &self,
        values: &[E],
        factor: impl Fn(usize) -> f32,
        weights: &[f32],
        span: &Range<usize>,
        end: usize,
        out: &mut [f32],
    ) {
        for (first, out) in (0..).step_by(ROWS).zip(out.chunks_mut(ROWS * self.width)) {
            let mut of_rows = [[0.0; SPAN]; ROWS];
            for (row, weights) in of_rows.iter_mut().zip(weights[first * end..].chunks_exact(end)) {
                let weights = weights[span.clone()].iter().enumerate();
                row.iter_mut().zip(weights).for_each(|(row, (index, weight))| *row = weight * factor(index));
            }
            mix(&of_rows, values, self.width, out);
        }
    }

    /// The head's vectors at `span`, as kernels take them.
    fn vectors<'a>(
        &self,
        blocks: &'a [Block],
        span: &Range<usize>,
        decoded: &'a mut Vec<f32>,
    ) -> Vectors<'a> {
        let block = &blocks[span.start / BLOCK_TOKENS];
        let first = self.kv_head() * BLOCK_TOKENS + span.start % BLOCK_TOKENS;
        if self.decodes {
            decoded.clear();
            decoded.resize(span.len() * self.width, 0.0);
            for (index, vector) in (first..).zip(decoded.chunks_exact_mut(self.width)) {
                block.load(index, &mut vector[..self.head_dim]);
            }
            return Vectors::F32(decoded);
        }
        let range = first * self.head_dim..(first + span.len()) * self.head_dim;
        match block {
            Block::F32(data) => Vectors::F32(&data[range]),
            Block::F16(data) => Vectors::F16(&data[range]),
            Block::Q8 { codes, scales } => {
                Vectors::Q8 { codes: &codes[range], scales: &scales[first..first + span.len()] }
            }
        }
    }
}

/// `[positions, width]`
enum Vectors<'a> {
    F32(&'a [f32]),
    F16(&'a [u16]),
    Q8 { codes: &'a [i8], scales: &'a [f32] },
}

fn spans(end: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(SPAN).map(move |start| start..end.min(start + SPAN))
}
