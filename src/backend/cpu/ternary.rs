//! Ternary linears of one token: walks the slabs and groups of a [`TernaryMatrix`], lets the integer
//! kernel sum codes, and turns the sums into floats with the matrix's scales.
//!
//! Codes are `weight + 1`, so `Σ weight · x = Σ code · x − Σ x`; the second sum does not depend on the
//! row and is made once.

use super::codes::Codes;
use super::dot::{self, FLOAT_PLANES, GroupBytes, MAX_CHUNKS, STEP_BYTES};
use super::gemm;
use super::run_product::RunProduct;
use super::scaled::scaled;
use super::tiles::Tile;
use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, SLAB_ROWS, STREAMS};
use crate::quant::{KernelScales, TernaryMatrix};
use std::ops::Range;

/// A product that is ready to be computed, rows by rows.
pub enum Product<'a> {
    /// Of int8 codes with rows that have one scale.
    Rows {
        weight: &'a TernaryMatrix,
        x: &'a Codes,
    },
    Runs(RunProduct<'a>, usize),
}

impl<'a> Product<'a> {
    pub fn new(weight: &'a TernaryMatrix, x: &'a Codes) -> Self {
        assert_eq!(weight.padded_cols(), x.padded_cols());
        let is_grouped = matches!(weight.scales(), KernelScales::Group { .. });
        if is_grouped || x.planes() > 1 || weight.padded_cols() / CHUNK_COLS > MAX_CHUNKS {
            Self::Runs(RunProduct::new(weight, x), x.planes())
        } else {
            Self::Rows { weight, x }
        }
    }

    /// `out += x · Wᵀ` for the rows that are the tile's columns; the tile starts at a whole group.
    pub fn add(&self, out: &mut Tile<'_>) {
        match self {
            Self::Rows { weight, x } if x.tokens() == 1 => match weight.scales() {
                KernelScales::Tensor(scale) => gemv_rows_add(weight, x, |_| [*scale; GROUP_ROWS], out),
                scales => gemv_rows_add(weight, x, |row| scales.of_rows(row), out),
            },
            Self::Rows { weight, x } => gemm::matmul_add(weight, x, out),
            Self::Runs(product, 1) => dot::add_runs::<1>(product, out),
            Self::Runs(product, _) => dot::add_runs::<FLOAT_PLANES>(product, out),
        }
    }
}

/// One token of int8 activations with whole rows, which leaves nothing but the products to a group.
fn gemv_rows_add(
    weight: &TernaryMatrix,
    x: &Codes,
    scales: impl Fn(usize) -> [f32; GROUP_ROWS],
    out: &mut Tile<'_>,
) {
    let (vector, total, unit) = (x.vector(0), x.total(0), 1.0 / f64::from(x.scale(0)));
    let (first_row, columns) = (out.columns.start, out.columns.clone());
    let out = out.row_mut(0);
    for group in groups(weight, &columns) {
        let sums = dot::dot_streams(group.streams, vector);
        let values = scaled(&sums, total, &scales(group.first_row), unit);
        let out = &mut out[group.first_row - first_row..];
        match out.first_chunk_mut::<GROUP_ROWS>() {
            Some(out) => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
            None => out.iter_mut().zip(values).for_each(|(out, value)| *out += value),
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
