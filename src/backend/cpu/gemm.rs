//! Ternary linears of several tokens: the codes of a panel of rows are unpacked once, into the first-level
//! cache, and meet every token there. A tile of two rows and six vectors keeps its twelve sums in
//! registers, so that a loaded vector takes part in several products. Planes of one token are vectors of
//! their own.

use super::dot::{self, Chunk, TILE_ROWS, TILE_VECTORS};
use super::input::Codes;
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

/// `out += x · Wᵀ` for the rows that are the tile's columns; the tile starts at a whole group.
pub fn matmul_add(weight: &TernaryMatrix, x: &Codes, out: &mut Tile<'_>) {
    let mut panel = Panel::new(weight, x);
    let totals: Vec<i32> = (0..x.tokens()).map(|token| x.total(token)).collect();
    let first_row = out.columns.start;
    let mut groups = groups(weight, &out.columns);
    while let Some(first) = groups.next() {
        let row_groups = [Some(first), groups.next()];
        for (group, codes) in
            row_groups.iter().flatten().zip(panel.codes.chunks_mut(GROUP_ROWS * panel.chunks))
        {
            dot::unpack(group.streams, codes);
        }
        panel.sum(x);
        for (half, group) in row_groups.iter().enumerate() {
            let Some(group) = group else { continue };
            let scales = weight.scales().of_rows(group.first_row);
            for (token, sums) in panel.sums.iter().enumerate() {
                let scale = f64::from(x.scale(token));
                let sums = &sums[half * GROUP_ROWS..];
                let out = &mut out.row_mut(token)[group.first_row - first_row..];
                for ((out, sum), row_scale) in out.iter_mut().zip(sums).zip(scales) {
                    *out += (f64::from(sum - totals[token]) * f64::from(row_scale) / scale) as f32;
                }
            }
        }
    }
}

/// Scratch for the rows of a panel.
struct Panel {
    chunks: usize,
    /// `[PANEL_ROWS, chunks]`
    codes: Vec<Chunk>,
    /// A row of them a vector.
    sums: Vec<[i32; PANEL_ROWS]>,
}

impl Panel {
    fn new(weight: &TernaryMatrix, x: &Codes) -> Self {
        let chunks = weight.padded_cols() / CHUNK_COLS;
        Self {
            chunks,
            codes: vec![Chunk::zeroed(); PANEL_ROWS * chunks],
            sums: vec![[0; PANEL_ROWS]; x.tokens()],
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
                let sums = dot::dot_tile::<V, 1>(codes, vectors);
                for (out, sums) in self.sums[first..].iter_mut().zip(sums) {
                    for (out, sum) in out[row..].iter_mut().zip(sums) {
                        *out += sum;
                    }
                }
            }
        }
    }
}
