//! Ternary linears run by run: where a row has several scales, or activations several planes. The product of a run is
//! an exact integer, rounded once; it meets its scale in single precision, run after run in the same order for one
//! token and for many, so that a prompt in pieces gives what it gives whole.

use super::codes::Codes;
use super::dot::{Chunk, GroupBytes, RUN_STEPS, RunKernel, StepCodes, TILE_ROWS, TILE_VECTORS};
use super::runs::{GroupScales, Runs};
use super::ternary::groups;
use super::tiles::Tile;
use crate::quant::TernaryMatrix;
use crate::quant::ternary::GROUP_ROWS;
use bytemuck::Zeroable;

/// Tiles of rows in a group, which several tokens meet one after another.
const GROUP_TILES: usize = GROUP_ROWS / TILE_ROWS;

/// Products of a tile's rows with each of its tokens.
type TileValues = [[f32; TILE_ROWS]; TILE_VECTORS];

/// A product that is ready to be computed, rows by rows.
pub struct RunProduct<'a> {
    weight: &'a TernaryMatrix,
    x: &'a Codes,
    runs: Runs,
    /// For several tokens, their chunks in the order in which tiles take them: `[runs, tiles of tokens, planes, steps,
    /// tokens of a tile]`, of which one may be smaller than the others.
    tiles: Vec<Chunk>,
}

impl<'a> RunProduct<'a> {
    pub fn new(weight: &'a TernaryMatrix, x: &'a Codes) -> Self {
        let runs = Runs::new(weight, x);
        let tiles = if x.tokens() > 1 { tiles(&runs, x) } else { Vec::new() };
        Self { weight, x, runs, tiles }
    }

    /// `out += x · Wᵀ` for the rows that are the tile's columns; the tile starts at a whole group.
    pub fn add<K: RunKernel<PLANES>, const PLANES: usize>(&self, out: &mut Tile<'_>) {
        if self.x.tokens() == 1 { self.gemv_add::<K, PLANES>(out) } else { self.gemm_add::<K, PLANES>(out) }
    }

    fn gemv_add<K: RunKernel<PLANES>, const PLANES: usize>(&self, out: &mut Tile<'_>) {
        let (first_row, scale) = (out.columns.start, self.x.scale(0));
        for group in groups(self.weight, &out.columns) {
            let scales = GroupScales::new(self.weight, group.first_row);
            let values = self.group_values::<K, PLANES>(&group.streams, &scales);
            for (out, value) in out.row_mut(0)[group.first_row - first_row..].iter_mut().zip(values) {
                *out += value / scale;
            }
        }
    }

    // A function of its own: engines allocate registers worse where a caller holds several of these loops.
    #[inline(never)]
    fn group_values<K: RunKernel<PLANES>, const PLANES: usize>(
        &self,
        weights: &GroupBytes<'_>,
        scales: &GroupScales<'_>,
    ) -> [f32; GROUP_ROWS] {
        let kernel = K::new();
        let mut values = [0.0; GROUP_ROWS];
        for (run, totals) in self.runs.iter() {
            let sums = kernel.group_sums(run.of_group(weights), run.of_token(self.x, 0));
            add_scaled(&mut values, &sums, totals[0], scales.of_run(run));
        }
        values
    }

    fn gemm_add<K: RunKernel<PLANES>, const PLANES: usize>(&self, out: &mut Tile<'_>) {
        let first_row = out.columns.start;
        let tokens = self.x.tokens();
        let mut values = vec![TileValues::default(); tokens.div_ceil(TILE_VECTORS) * GROUP_TILES];
        for group in groups(self.weight, &out.columns) {
            values.fill(TileValues::default());
            let scales = GroupScales::new(self.weight, group.first_row);
            self.group_tiles::<K, PLANES>(&group.streams, &scales, &mut values);
            for token in 0..tokens {
                let scale = self.x.scale(token);
                let values = values[token / TILE_VECTORS * GROUP_TILES..][..GROUP_TILES].iter();
                let values = values.flat_map(|tile| tile[token % TILE_VECTORS]);
                for (out, value) in out.row_mut(token)[group.first_row - first_row..].iter_mut().zip(values) {
                    *out += value / scale;
                }
            }
        }
    }

    /// Eight rows times all tokens: a run's codes are unpacked once and meet every token in the first-level cache.
    fn group_tiles<K: RunKernel<PLANES>, const PLANES: usize>(
        &self,
        weights: &GroupBytes<'_>,
        scales: &GroupScales<'_>,
        values: &mut [TileValues],
    ) {
        let mut codes = [StepCodes::zeroed(); RUN_STEPS];
        let mut x = &self.tiles[..];
        for (run, totals) in self.runs.iter() {
            let (weights, scales) = (run.of_group(weights), scales.of_run(run));
            let codes = &mut codes[..run.steps()];
            K::unpack(weights, codes);
            let tiles = values.as_chunks_mut::<GROUP_TILES>().0.iter_mut();
            for (values, totals) in tiles.zip(totals.chunks(TILE_VECTORS)) {
                let of_tile;
                (of_tile, x) = x.split_at(PLANES * codes.len() * totals.len());
                match totals.len() {
                    1 => add_tiles::<K, PLANES, 1>(codes, of_tile, totals, scales, values),
                    2 => add_tiles::<K, PLANES, 2>(codes, of_tile, totals, scales, values),
                    3 => add_tiles::<K, PLANES, 3>(codes, of_tile, totals, scales, values),
                    4 => add_tiles::<K, PLANES, 4>(codes, of_tile, totals, scales, values),
                    5 => add_tiles::<K, PLANES, 5>(codes, of_tile, totals, scales, values),
                    _ => add_tiles::<K, PLANES, TILE_VECTORS>(codes, of_tile, totals, scales, values),
                }
            }
        }
    }
}

fn tiles(runs: &Runs, x: &Codes) -> Vec<Chunk> {
    let mut tiles = Vec::with_capacity(x.vectors().len());
    for (run, _) in runs.iter() {
        for first in (0..x.tokens()).step_by(TILE_VECTORS) {
            let count = TILE_VECTORS.min(x.tokens() - first);
            for plane in 0..x.planes() {
                let start = tiles.len();
                tiles.resize(start + run.steps() * count, Chunk::zeroed());
                for token in 0..count {
                    let places = tiles[start + token..].iter_mut().step_by(count);
                    places.zip(run.of_plane(x, first + token, plane)).for_each(|(to, from)| *to = *from);
                }
            }
        }
    }
    tiles
}

/// Adds the products of eight rows and `V` tokens in a run.
// A function of its own: engines allocate registers worse where a caller holds several of these loops.
#[inline(never)]
fn add_tiles<K: RunKernel<PLANES>, const PLANES: usize, const V: usize>(
    codes: &[StepCodes],
    x: &[Chunk],
    totals: &[i32],
    scales: &[f32; GROUP_ROWS],
    values: &mut [TileValues; GROUP_TILES],
) {
    let x = x.as_chunks::<V>().0;
    for ((tile, values), scales) in values.iter_mut().enumerate().zip(scales.as_chunks::<TILE_ROWS>().0) {
        let sums = K::tile_sums::<V>(codes, tile, x);
        for ((values, sums), total) in values.iter_mut().zip(&sums).zip(totals) {
            add_scaled(values, sums, *total, scales);
        }
    }
}

/// Adds the products of a run: `Σ code · x` and `Σ x` are known modulo 2³², into which their difference fits.
#[inline(always)]
fn add_scaled<const ROWS: usize>(
    values: &mut [f32; ROWS],
    sums: &[i32; ROWS],
    total: i32,
    scales: &[f32; ROWS],
) {
    for ((value, sum), scale) in values.iter_mut().zip(sums).zip(scales) {
        *value += sum.wrapping_sub(total) as f32 * scale;
    }
}
