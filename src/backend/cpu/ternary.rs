//! Ternary linears of one token: walks the slabs and groups of a [`TernaryMatrix`], lets the integer
//! kernel sum codes, and turns the sums into floats with the matrix's scales.
//!
//! Codes are `weight + 1`, so `Σ weight · x = Σ code · x − Σ x`; the second sum does not depend on the
//! row and is made once.

use super::codes::Codes;
use super::dot::{self, GroupBytes, STEP_BYTES};
use super::gemm;
use super::runs::{Real, Runs};
use super::scaled::scaled;
use super::tiles::Tile;
use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, SLAB_ROWS, STREAMS};
use crate::quant::{KernelScales, TernaryMatrix};
use std::ops::Range;

/// A product that is ready to be computed, rows by rows.
pub struct Product<'a> {
    weight: &'a TernaryMatrix,
    x: &'a Codes,
    runs: Runs,
}

impl<'a> Product<'a> {
    pub fn new(weight: &'a TernaryMatrix, x: &'a Codes) -> Self {
        assert_eq!(weight.padded_cols(), x.padded_cols());
        Self { weight, x, runs: Runs::new(weight, x) }
    }

    /// `out += x · Wᵀ` for the rows that are the tile's columns; the tile starts at a whole group.
    pub fn add(&self, out: &mut Tile<'_>) {
        match (self.x.tokens(), self.runs.are_rows()) {
            (1, true) if self.x.planes() == 1 => match self.weight.scales() {
                KernelScales::Tensor(scale) => self.gemv_rows_add(|_| [*scale; GROUP_ROWS], out),
                _ => self.gemv_rows_add(|row| self.runs.first().scales(self.weight, row), out),
            },
            (1, true) => self.gemv_add::<f64>(out),
            (1, false) => self.gemv_add::<f32>(out),
            (_, true) if self.x.planes() == 1 => {
                gemm::matmul_rows_add(self.weight, self.x, self.runs.first(), out);
            }
            (_, true) => gemm::matmul_add::<f64>(self.weight, self.x, &self.runs, out),
            (_, false) => gemm::matmul_add::<f32>(self.weight, self.x, &self.runs, out),
        }
    }

    /// [`Self::gemv_add`] of int8 activations with whole rows, which leaves nothing but the products to a group.
    fn gemv_rows_add(&self, scales: impl Fn(usize) -> [f32; GROUP_ROWS], out: &mut Tile<'_>) {
        let Self { weight, x, .. } = self;
        let (vector, total, unit) = (x.vector(0), x.total(0), 1.0 / f64::from(x.scale(0)));
        let (first_row, columns) = (out.columns.start, out.columns.clone());
        let out = out.row_mut(0);
        for group in groups(weight, &columns) {
            let sums = dot::dot_streams(group.streams, vector);
            let scales = scales(group.first_row);
            let values = scaled(&sums, total, &scales, unit);
            let out = &mut out[group.first_row - first_row..];
            match out.first_chunk_mut::<GROUP_ROWS>() {
                Some(out) => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
                None => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
            }
        }
    }

    fn gemv_add<R: Real>(&self, out: &mut Tile<'_>) {
        let Self { weight, x, runs } = self;
        let first_row = out.columns.start;
        for group in groups(weight, &out.columns) {
            let mut values = [R::default(); GROUP_ROWS];
            for (index, run) in runs.iter().enumerate() {
                let mut value = [R::default(); GROUP_ROWS];
                if x.planes() == 1 {
                    let sums = run.sums(group.streams, x.vector(0));
                    Runs::add_plane(&mut value, &sums, runs.total(index, 0));
                } else {
                    let planes = std::array::from_fn(|plane| x.vector(plane));
                    for (plane, sums) in run.plane_sums(group.streams, planes).iter().enumerate() {
                        Runs::add_plane(&mut value, sums, runs.total(index, plane));
                    }
                }
                let scales = run.scales(weight, group.first_row);
                for ((sum, value), scale) in values.iter_mut().zip(value).zip(scales) {
                    *sum = *sum + value * R::from_single(scale);
                }
            }
            for (out, value) in out.row_mut(0)[group.first_row - first_row..].iter_mut().zip(values) {
                *out += (value / R::from_single(x.scale(0))).into_single();
            }
        }
    }
}

/// Eight rows of a matrix.
pub struct Group<'a> {
    pub first_row: usize,
    pub streams: GroupBytes<'a>,
}

/// The groups of `rows`, which start at a whole group.
pub fn groups<'a>(
    weight: &'a TernaryMatrix,
    rows: &Range<usize>,
) -> impl Iterator<Item = Group<'a>> + use<'a> {
    assert!(rows.start.is_multiple_of(GROUP_ROWS));
    let group_bytes = weight.padded_cols() / STREAMS / CHUNK_COLS * STEP_BYTES;
    let padded_rows = weight.padded_rows();
    rows.clone().step_by(GROUP_ROWS).map(move |first_row| {
        let slab = first_row / SLAB_ROWS * SLAB_ROWS;
        let groups = SLAB_ROWS.min(padded_rows - slab) / GROUP_ROWS;
        let bytes = &weight.bytes()[slab * weight.padded_cols() / 4..];
        let group = (first_row - slab) / GROUP_ROWS;
        Group {
            first_row,
            streams: std::array::from_fn(|stream| {
                &bytes[(stream * groups + group) * group_bytes..][..group_bytes]
            }),
        }
    })
}
