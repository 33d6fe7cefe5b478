//! Ternary linears of several tokens, of int8 codes with whole rows: the codes of a panel of rows are unpacked once,
//! into the first-level cache, and meet every token there. A tile of two rows and six vectors keeps its twelve sums in
//! registers, so that a loaded vector takes part in several products.

use super::codes::Codes;
use super::dot::{self, Chunk, TILE_ROWS, TILE_VECTORS};
use super::scaled::scaled;
use super::ternary::groups;
use super::tiles::Tile;
use crate::quant::TernaryMatrix;
use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, STREAMS};
use bytemuck::Zeroable;

/// Rows of a panel, two groups.
const PANEL_ROWS: usize = 2 * GROUP_ROWS;

/// Columns that a tile sums at once are at most this many chunks, a multiple of a step's: six vectors of
/// them take 20 or 40 KB.
const BLOCK_CHUNKS: usize = 54 * STREAMS;

/// `out += x · Wᵀ` for the rows that are the tile's columns, which have one scale each; the tile starts at a whole
/// group, and `x` are int8 codes.
pub fn matmul_add(weight: &TernaryMatrix, x: &Codes, out: &mut Tile<'_>) {
    let chunks = weight.padded_cols() / CHUNK_COLS;
    let mut panel = Panel {
        chunks,
        codes: vec![Chunk::zeroed(); PANEL_ROWS * chunks],
        sums: vec![[0; PANEL_ROWS]; x.tokens()],
        ..Default::default()
    };
    let first_column = out.columns.start;
    let mut groups = groups(weight, &out.columns);
    while let Some(first) = groups.next() {
        panel.first_row = first.first_row;
        panel.column = first.first_row - first_column;
        let (one, other) = panel.codes.split_at_mut(GROUP_ROWS * chunks);
        dot::unpack(first.streams, one);
        if let Some(second) = groups.next() {
            dot::unpack(second.streams, other);
        }
        panel.sum(x);
        let scales = panel.scales(weight);
        for (token, sums) in panel.sums.iter().enumerate() {
            let (total, unit) = (x.total(token), 1.0 / f64::from(x.scale(token)));
            panel.add(out.row_mut(token), scaled(sums, total, &scales, unit));
        }
    }
}

/// Some rows.
#[derive(Default)]
struct Panel {
    /// The first one, and its column in the tile that is computed.
    first_row: usize,
    column: usize,
    chunks: usize,
    /// `[PANEL_ROWS, chunks]`; what the matrix or the tile lacks is anything.
    codes: Vec<Chunk>,
    /// A row of them a token.
    sums: Vec<[i32; PANEL_ROWS]>,
}

impl Panel {
    fn scales(&self, weight: &TernaryMatrix) -> [f32; PANEL_ROWS] {
        let mut scales = [0.0; PANEL_ROWS];
        for (half, scales) in scales.as_chunks_mut::<GROUP_ROWS>().0.iter_mut().enumerate() {
            *scales = weight.scales().of_rows(self.first_row + half * GROUP_ROWS);
        }
        scales
    }

    /// Adds to the rows' places in a token's row of the tile.
    #[inline(always)]
    fn add(&self, out: &mut [f32], values: [f32; PANEL_ROWS]) {
        let out = &mut out[self.column..];
        match out.first_chunk_mut::<PANEL_ROWS>() {
            Some(out) => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
            None => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
        }
    }

    fn sum(&mut self, x: &Codes) {
        let vectors = self.sums.len();
        for first in (0..vectors).step_by(TILE_VECTORS) {
            match vectors - first {
                1 => self.sum_tiles::<1>(x, first),
                2 => self.sum_tiles::<2>(x, first),
                3 => self.sum_tiles::<3>(x, first),
                4 => self.sum_tiles::<4>(x, first),
                5 => self.sum_tiles::<5>(x, first),
                _ => self.sum_tiles::<TILE_VECTORS>(x, first),
            }
        }
    }

    /// All rows of the panel times `V` vectors, so many columns at a time that the vectors stay in the
    /// first-level cache from row to row.
    fn sum_tiles<const V: usize>(&mut self, x: &Codes, first: usize) {
        for sums in &mut self.sums[first..first + V] {
            *sums = [0; PANEL_ROWS];
        }
        for start in (0..self.chunks).step_by(BLOCK_CHUNKS) {
            let range = start..self.chunks.min(start + BLOCK_CHUNKS);
            let vectors: [&[Chunk]; V] =
                std::array::from_fn(|vector| &x.vector(first + vector)[range.clone()]);
            for row in (0..PANEL_ROWS).step_by(TILE_ROWS) {
                let codes =
                    std::array::from_fn(|tile| &self.codes[(row + tile) * self.chunks..][range.clone()]);
                let sums = dot::dot_tile::<V>(codes, vectors);
                for (out, sums) in self.sums[first..].iter_mut().zip(sums) {
                    for (out, sum) in out[row..].iter_mut().zip(sums) {
                        *out += sum;
                    }
                }
            }
        }
    }
}
