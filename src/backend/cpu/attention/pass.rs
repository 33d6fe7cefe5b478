//! Attention of some tokens in all query heads that share one key/value head. A row is a query head of a
//! token; rows meet every position up to the last token's, and what a row may not see weighs nothing.

use super::floats::Floats;
use super::integers::Integers;
#[cfg(target_feature = "simd128")]
use crate::backend::cpu::ahead::Ahead;
use crate::backend::cpu::cache::{BLOCK_TOKENS, Block, LayerCache};
use crate::backend::cpu::scaled::multiply;
use crate::backend::cpu::tensor::CpuTensor;
use crate::backend::cpu::tiles::Tile;
use crate::float::exponentials;
use std::ops::Range;

/// Positions that meet all rows before the next ones do: their keys stay in the first-level cache.
pub const SPAN: usize = BLOCK_TOKENS;
/// Rows that meet a key or value at a time.
pub const ROWS: usize = 4;

/// The key/value head and the rows of a pass.
pub struct HeadPass {
    pub head_dim: usize,
    pub kv_head: usize,
    /// Whether the next head's pass follows.
    pub has_next: bool,
    /// Positions that the rows meet.
    pub end: usize,
    /// `[rows, head_dim]`, with the factor of the softmax.
    pub queries: Vec<f32>,
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

/// Attention of the query heads in `columns`, which share a key/value head, for the tokens of `out`, the first of
/// which is at position `start`.
pub fn attend_head(
    layer: &LayerCache,
    query: &CpuTensor,
    head_dim: usize,
    start: usize,
    columns: Range<usize>,
    out: &mut Tile<'_>,
) {
    let tokens = out.tokens.clone();
    let heads = columns.len() / head_dim;
    let scale = 1.0 / (head_dim as f32).sqrt();
    let mut queries = Vec::with_capacity(tokens.len() * columns.len());
    for token in tokens.clone() {
        queries.extend(query.row(token)[columns.clone()].iter().map(|query| query * scale));
    }
    let pass = HeadPass {
        head_dim,
        kv_head: columns.start / columns.len(),
        has_next: columns.end < out.columns.end,
        end: start + tokens.end,
        queries,
    };
    #[cfg(target_feature = "simd128")]
    if columns.start == out.columns.start {
        // No pass came before, in which they could have been touched.
        Ahead::new(pass.bytes(&layer.keys, 0), 1).touch(0);
    }
    let mut sums = Vec::with_capacity(pass.queries.len() / head_dim);
    let to_weights = |scores: &mut [f32]| {
        for (row, scores) in scores.chunks_exact_mut(pass.end).enumerate() {
            let (seen, unseen) = scores.split_at_mut(start + tokens.start + row / heads + 1);
            sums.push(exponentials(seen));
            unseen.fill(0.0);
        }
    };
    let mixed = match layer.keys[0] {
        Block::F32(_) | Block::F16(_) => Floats::new(&pass).attend(layer, to_weights),
        Block::Q16(_) | Block::Q8(_) => Integers::new(&pass).attend(layer, to_weights),
    };
    let width = mixed.len() * head_dim / pass.queries.len();
    let mut rows = mixed.chunks_exact(width).zip(sums);
    let first = columns.start - out.columns.start;
    for token in tokens {
        let out = &mut out.row_mut(token)[first..first + columns.len()];
        for (out, (row, sum)) in out.chunks_exact_mut(head_dim).zip(&mut rows) {
            multiply(&row[..head_dim], 1.0 / sum, out);
        }
    }
}

impl HeadPass {
    /// The positions, block by block.
    pub fn spans(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let end = self.end;
        (0..end).step_by(SPAN).map(move |start| start..end.min(start + SPAN))
    }

    /// What is needed after the keys up to `position`: the next keys, then the first values.
    pub fn after_keys<'a>(&self, layer: &'a LayerCache, position: usize) -> &'a [u8] {
        match self.bytes(&layer.keys, position) {
            [] => self.bytes(&layer.values, 0),
            next => next,
        }
    }

    /// What is needed after the values up to `position`: the next values, then the first keys of the next head.
    pub fn after_values<'a>(&self, layer: &'a LayerCache, position: usize) -> &'a [u8] {
        match self.bytes(&layer.values, position) {
            [] if self.has_next => self.bytes_of(self.kv_head + 1, &layer.keys, 0),
            next => next,
        }
    }

    /// What the head has from position `start` on in its block; nothing at the end.
    fn bytes<'a>(&self, blocks: &'a [Block], start: usize) -> &'a [u8] {
        self.bytes_of(self.kv_head, blocks, start)
    }

    fn bytes_of<'a>(&self, kv_head: usize, blocks: &'a [Block], start: usize) -> &'a [u8] {
        if start >= self.end {
            return &[];
        }
        let count = SPAN.min(self.end - start);
        match &blocks[start / BLOCK_TOKENS] {
            Block::F32(data) => bytemuck::cast_slice(self.floats_of(kv_head, data, count)),
            Block::F16(data) => bytemuck::cast_slice(self.floats_of(kv_head, data, count)),
            Block::Q16(data) => bytemuck::cast_slice(data.of_head(kv_head, count).tiles),
            Block::Q8(data) => bytemuck::cast_slice(data.of_head(kv_head, count).tiles),
        }
    }

    /// The head's first `count` vectors of a block.
    pub fn floats<'a, E>(&self, data: &'a [E], count: usize) -> &'a [E] {
        self.floats_of(self.kv_head, data, count)
    }

    fn floats_of<'a, E>(&self, kv_head: usize, data: &'a [E], count: usize) -> &'a [E] {
        &data[kv_head * BLOCK_TOKENS * self.head_dim..][..count * self.head_dim]
    }
}

/// Where the scores of `R` rows with `count` keys go: those of a row start `stride` after those of the one before.
#[cfg(target_feature = "simd128")]
#[inline(always)]
pub fn rows_of_scores<const R: usize>(out: &mut [f32], stride: usize, count: usize) -> [&mut [f32]; R] {
    let mut rows = out.chunks_mut(stride);
    std::array::from_fn(|_| rows.next().map_or(&mut [][..], |row| &mut row[..count]))
}
