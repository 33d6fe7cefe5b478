//! Ternary linears of one token: walks the slabs and groups of a [`TernaryMatrix`], lets the integer
//! kernel sum codes, and turns the sums into floats with the matrix's scales.
//!
//! Codes are `weight + 1`, so `Σ weight · x = Σ code · x − Σ x`; the second sum does not depend on the
//! row and is made once.

use super::dot::{GroupBytes, STEP_BYTES};
use super::gemm;
use super::input::Codes;
use super::runs::{Real, Runs};
use super::tensor::CpuTensor;
use crate::quant::TernaryMatrix;
use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, SLAB_ROWS, STREAMS};

/// `out += x · Wᵀ`; `out` is `[tokens, rows]`.
pub fn matmul_add(weight: &TernaryMatrix, x: &Codes, out: &mut CpuTensor) {
    assert_eq!(weight.padded_cols(), x.padded_cols());
    let runs = Runs::new(weight, x);
    match (x.tokens(), runs.are_rows()) {
        (1, true) => gemv_add::<f64>(weight, x, &runs, out.row_mut(0)),
        (1, false) => gemv_add::<f32>(weight, x, &runs, out.row_mut(0)),
        (_, true) => gemm::matmul_add::<f64>(weight, x, &runs, out),
        (_, false) => gemm::matmul_add::<f32>(weight, x, &runs, out),
    }
}

fn gemv_add<R: Real>(weight: &TernaryMatrix, x: &Codes, runs: &Runs, out: &mut [f32]) {
    for group in groups(weight) {
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
        for (out, value) in out[group.rows(weight)].iter_mut().zip(values) {
            *out += (value / R::from_single(x.scale(0))).into_single();
        }
    }
}

/// Eight rows of a matrix.
pub struct Group<'a> {
    pub first_row: usize,
    pub streams: GroupBytes<'a>,
}

impl Group<'_> {
    /// The group's rows that the matrix has.
    pub fn rows(&self, weight: &TernaryMatrix) -> std::ops::Range<usize> {
        self.first_row..weight.rows().min(self.first_row + GROUP_ROWS)
    }
}

/// The groups of a matrix, from the first row to the last.
pub fn groups(weight: &TernaryMatrix) -> impl Iterator<Item = Group<'_>> {
    let group_bytes = weight.padded_cols() / STREAMS / CHUNK_COLS * STEP_BYTES;
    let slab_bytes = SLAB_ROWS * weight.padded_cols() / 4;
    let padded_rows = weight.padded_rows();
    weight.bytes().chunks(slab_bytes.max(1)).enumerate().flat_map(move |(slab, bytes)| {
        let first = slab * SLAB_ROWS;
        let groups = SLAB_ROWS.min(padded_rows.saturating_sub(first)) / GROUP_ROWS;
        (0..groups).map(move |group| Group {
            first_row: first + group * GROUP_ROWS,
            streams: std::array::from_fn(|stream| {
                &bytes[(stream * groups + group) * group_bytes..][..group_bytes]
            }),
        })
    })
}
