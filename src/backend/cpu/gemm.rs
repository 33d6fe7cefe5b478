//! Ternary linears of several tokens: the codes of a panel of rows are unpacked once, into the first-level
//! cache, and meet every token there. A tile of two rows and six vectors keeps its twelve sums in
//! registers, so that a loaded vector takes part in several products. Planes of one token are vectors of
//! their own.

use super::dot::{self, Chunk, TILE_ROWS, TILE_VECTORS};
use super::input::Codes;
use super::runs::{Real, Run, Runs};
use super::ternary::{Group, groups};
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
pub fn matmul_add<R: Real>(weight: &TernaryMatrix, x: &Codes, runs: &Runs, out: &mut Tile<'_>) {
    let mut panel = Panel::<R>::new(weight, x);
    let first_row = out.columns.start;
    let mut groups = groups(weight, &out.columns);
    while let Some(first) = groups.next() {
        let row_groups = [Some(first), groups.next()];
        panel.multiply(weight, x, runs, &row_groups);
        for (half, group) in row_groups.iter().enumerate() {
            let Some(group) = group else { continue };
            for (token, values) in panel.values.iter().enumerate() {
                let scale = R::from_single(x.scale(token));
                let values = &values[half * GROUP_ROWS..];
                let out = &mut out.row_mut(token)[group.first_row - first_row..];
                for (out, value) in out.iter_mut().take(GROUP_ROWS).zip(values) {
                    *out += (*value / scale).into_single();
                }
            }
        }
    }
}

/// Scratch for the rows of a panel.
struct Panel<R> {
    chunks: usize,
    /// `[PANEL_ROWS, chunks]`
    codes: Vec<Chunk>,
    /// Sums of the current run, a row of them a vector.
    sums: Vec<[i32; PANEL_ROWS]>,
    /// Sums with their scales, a row of them a token.
    values: Vec<[R; PANEL_ROWS]>,
}

impl<R: Real> Panel<R> {
    fn new(weight: &TernaryMatrix, x: &Codes) -> Self {
        let chunks = weight.padded_cols() / CHUNK_COLS;
        Self {
            chunks,
            codes: vec![Chunk::zeroed(); PANEL_ROWS * chunks],
            sums: vec![[0; PANEL_ROWS]; x.tokens() * x.planes()],
            values: vec![[R::default(); PANEL_ROWS]; x.tokens()],
        }
    }

    fn multiply(&mut self, weight: &TernaryMatrix, x: &Codes, runs: &Runs, groups: &[Option<Group<'_>>; 2]) {
        for (group, codes) in groups.iter().flatten().zip(self.codes.chunks_mut(GROUP_ROWS * self.chunks)) {
            dot::unpack(group.streams, codes);
        }
        self.values.fill([R::default(); PANEL_ROWS]);
        for (index, run) in runs.iter().enumerate() {
            self.sum_run(run, x);
            let scales = groups.each_ref().map(|group| match group {
                Some(group) => run.scales(weight, group.first_row),
                None => [0.0; GROUP_ROWS],
            });
            for (token, values) in self.values.iter_mut().enumerate() {
                let mut value = [R::default(); PANEL_ROWS];
                for vector in token * x.planes()..(token + 1) * x.planes() {
                    Runs::add_plane(&mut value, &self.sums[vector], runs.total(index, vector));
                }
                for ((sum, value), scale) in values.iter_mut().zip(value).zip(scales.as_flattened()) {
                    *sum = *sum + value * R::from_single(*scale);
                }
            }
        }
    }

    fn sum_run(&mut self, run: &Run, x: &Codes) {
        match run {
            Run::Row { .. } => self.sum_strided::<1>(run, x),
            Run::Stream { .. } => self.sum_strided::<STREAMS>(run, x),
        }
    }

    fn sum_strided<const STRIDE: usize>(&mut self, run: &Run, x: &Codes) {
        let vectors = self.sums.len();
        for first in (0..vectors).step_by(TILE_VECTORS) {
            match vectors - first {
                1 => self.sum_tiles::<1, STRIDE>(run, x, first),
                2 => self.sum_tiles::<2, STRIDE>(run, x, first),
                3 => self.sum_tiles::<3, STRIDE>(run, x, first),
                4 => self.sum_tiles::<4, STRIDE>(run, x, first),
                5 => self.sum_tiles::<5, STRIDE>(run, x, first),
                _ => self.sum_tiles::<TILE_VECTORS, STRIDE>(run, x, first),
            }
        }
    }

    /// All rows of the panel times `V` vectors, so many columns at a time that the vectors stay in the
    /// first-level cache from row to row.
    fn sum_tiles<const V: usize, const STRIDE: usize>(&mut self, run: &Run, x: &Codes, first: usize) {
        for sums in &mut self.sums[first..first + V] {
            *sums = [0; PANEL_ROWS];
        }
        let all = run.chunks();
        for start in all.clone().step_by(BLOCK_CHUNKS) {
            let range = start..all.end.min(start + BLOCK_CHUNKS);
            let vectors: [&[Chunk]; V] =
                std::array::from_fn(|vector| &x.vector(first + vector)[range.clone()]);
            for row in (0..PANEL_ROWS).step_by(TILE_ROWS) {
                let codes =
                    std::array::from_fn(|tile| &self.codes[(row + tile) * self.chunks..][range.clone()]);
                let sums = dot::dot_tile::<V, STRIDE>(codes, vectors);
                for (out, sums) in self.sums[first..].iter_mut().zip(sums) {
                    for (out, sum) in out[row..].iter_mut().zip(sums) {
                        *out += sum;
                    }
                }
            }
        }
    }
}
