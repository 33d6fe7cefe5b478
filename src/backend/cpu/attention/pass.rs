//! Attention of some tokens in all query heads that share one key/value head. A row is a query head of a
//! token; rows meet every position up to the last token's, and what a row may not see weighs nothing.

#[cfg(not(target_feature = "simd128"))]
use super::portable::{Element, arrange, mix, restore, scores};
#[cfg(target_feature = "simd128")]
use super::simd128::{Element, arrange, mix, restore, scores};
use crate::backend::cpu::cache::{BLOCK_TOKENS, Block, LayerCache};
use crate::backend::cpu::float::softmax;
use crate::backend::cpu::tensor::CpuTensor;
use crate::backend::cpu::tiles::Tile;
use std::ops::Range;

/// Positions that meet all rows before the next ones do: their keys stay in the first-level cache.
pub const SPAN: usize = BLOCK_TOKENS;
/// Rows that meet a key or value at a time.
pub const ROWS: usize = 4;
/// Kernels take vectors of a multiple of this; others are decoded and padded with zeros.
pub const LANES: usize = 8;
/// Queries below this can carry [`Element::FACTOR`] without overflow.
const QUERY_LIMIT: f32 = 60_000.0;

/// What the values of a span's positions weigh in each row.
pub type Weights = [[f32; SPAN]; ROWS];

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
        let mut weights = self.scores(layer, end);
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
    fn scores(&mut self, layer: &LayerCache, end: usize) -> Vec<f32> {
        for queries in self.queries.chunks_mut(ROWS * self.width) {
            match layer.keys[0] {
                Block::F16(_) if !self.decodes => arrange::<u16>(queries, self.width),
                Block::Q8 { .. } if !self.decodes => arrange::<i8>(queries, self.width),
                _ => arrange::<f32>(queries, self.width),
            }
        }
        let mut out = vec![0.0; self.queries.len() / self.width * end];
        let mut decoded = Vec::new();
        for span in spans(end) {
            let ahead = match self.bytes(&layer.keys, span.end, end) {
                [] => self.bytes(&layer.values, 0, end),
                next => next,
            };
            match self.vectors(&layer.keys, &span, &mut decoded) {
                Head::F32(keys) => self.score_span(self.with(keys, ahead), &span, end, &mut out),
                Head::F16(keys) => self.score_span(self.with(keys, ahead), &span, end, &mut out),
                Head::Q8 { codes, scales } => {
                    self.score_span(self.with(codes, ahead), &span, end, &mut out);
                    for out in out.chunks_exact_mut(end) {
                        out[span.clone()].iter_mut().zip(scales).for_each(|(score, scale)| *score *= scale);
                    }
                }
            }
        }
        out
    }

    fn score_span<E: Element>(
        &self,
        mut keys: Vectors<'_, E>,
        span: &Range<usize>,
        end: usize,
        out: &mut [f32],
    ) {
        for (first, queries) in (0..).step_by(ROWS).zip(self.queries.chunks(ROWS * self.width)) {
            scores(queries, keys, &mut out[first * end + span.start..], end);
            keys.ahead = &[];
        }
    }

    /// `Σ weight · value` for every row, `[rows, width]`.
    fn mix(&self, values: &[Block], weights: &[f32], end: usize) -> Vec<f32> {
        let mut out = vec![0.0; self.queries.len()];
        let mut decoded = Vec::new();
        for span in spans(end) {
            let ahead = self.bytes(values, span.end, end);
            match self.vectors(values, &span, &mut decoded) {
                Head::F32(values) => {
                    self.mix_span(self.with(values, ahead), |_| f32::FACTOR, weights, &span, &mut out)
                }
                Head::F16(values) => {
                    self.mix_span(self.with(values, ahead), |_| u16::FACTOR, weights, &span, &mut out)
                }
                Head::Q8 { codes, scales } => {
                    let factor = |index: usize| scales[index] * i8::FACTOR;
                    self.mix_span(self.with(codes, ahead), factor, weights, &span, &mut out);
                }
            }
        }
        match values[0] {
            Block::F16(_) if !self.decodes => restore::<u16>(&mut out),
            Block::Q8 { .. } if !self.decodes => restore::<i8>(&mut out),
            _ => restore::<f32>(&mut out),
        }
        out
    }

    fn mix_span<E: Element>(
        &self,
        mut values: Vectors<'_, E>,
        factor: impl Fn(usize) -> f32,
        weights: &[f32],
        span: &Range<usize>,
        out: &mut [f32],
    ) {
        let end = weights.len() * self.width / self.queries.len();
        for (first, out) in (0..).step_by(ROWS).zip(out.chunks_mut(ROWS * self.width)) {
            let mut of_rows: Weights = [[0.0; SPAN]; ROWS];
            for (row, weights) in of_rows.iter_mut().zip(weights[first * end..].chunks_exact(end)) {
                let weights = weights[span.clone()].iter().enumerate();
                row.iter_mut().zip(weights).for_each(|(row, (index, weight))| *row = weight * factor(index));
            }
            mix(&of_rows, values, out);
            values.ahead = &[];
        }
    }

    fn with<'a, E>(&self, data: &'a [E], ahead: &'a [u8]) -> Vectors<'a, E> {
        Vectors { data, width: self.width, ahead }
    }

    /// The head's vectors at `span`, as kernels take them.
    fn vectors<'a>(&self, blocks: &'a [Block], span: &Range<usize>, decoded: &'a mut Vec<f32>) -> Head<'a> {
        let block = &blocks[span.start / BLOCK_TOKENS];
        if !self.decodes {
            return self.head(block, span.len());
        }
        decoded.clear();
        decoded.resize(span.len() * self.width, 0.0);
        let first = self.kv_head() * BLOCK_TOKENS;
        for (index, vector) in (first..).zip(decoded.chunks_exact_mut(self.width)) {
            block.load(index, &mut vector[..self.head_dim]);
        }
        Head::F32(decoded)
    }

    /// The head's first `count` vectors in a block.
    fn head<'a>(&self, block: &'a Block, count: usize) -> Head<'a> {
        let first = self.kv_head() * BLOCK_TOKENS;
        let range = first * self.head_dim..(first + count) * self.head_dim;
        match block {
            Block::F32(data) => Head::F32(&data[range]),
            Block::F16(data) => Head::F16(&data[range]),
            Block::Q8 { codes, scales } => {
                Head::Q8 { codes: &codes[range], scales: &scales[first..first + count] }
            }
        }
    }

    /// What the head has from position `start` on in its block; nothing at the `end`.
    fn bytes<'a>(&self, blocks: &'a [Block], start: usize, end: usize) -> &'a [u8] {
        if start >= end {
            return &[];
        }
        match self.head(&blocks[start / BLOCK_TOKENS], BLOCK_TOKENS.min(end - start)) {
            Head::F32(data) => bytemuck::cast_slice(data),
            Head::F16(data) => bytemuck::cast_slice(data),
            Head::Q8 { codes, .. } => bytemuck::cast_slice(codes),
        }
    }
}

/// A head's keys or values of some positions, `[positions, width]`.
enum Head<'a> {
    F32(&'a [f32]),
    F16(&'a [u16]),
    Q8 { codes: &'a [i8], scales: &'a [f32] },
}

/// Keys or values for a kernel.
#[derive(Clone, Copy)]
pub struct Vectors<'a, E> {
    /// `[positions, width]`
    pub data: &'a [E],
    pub width: usize,
    /// What will be needed next.
    pub ahead: &'a [u8],
}

fn spans(end: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(SPAN).map(move |start| start..end.min(start + SPAN))
}
