//! Ternary linears: walks the slabs and groups of a [`TernaryMatrix`], lets the integer kernel sum codes,
//! and turns the sums into floats with the matrix's scales.
//!
//! Codes are `weight + 1`, so `Σ weight · x = Σ code · x − Σ x`; the second sum does not depend on the
//! row and is made once.

use super::dot::{self, MAX_WIDE_STEPS, RowSums, STEP_BYTES, STEP_STRIDE};
use super::input::{Codes, PLANE_BITS};
use super::tiles::Tile;
use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, SLAB_ROWS, STREAMS};
use crate::quant::{Scales, TernaryMatrix};
use std::ops::Range;

/// `out += x · Wᵀ` for the rows that are the tile's columns; the tile starts at a whole group.
pub fn matmul_add(weight: &TernaryMatrix, x: &Codes, out: &mut Tile<'_>) {
    assert_eq!(weight.padded_cols(), x.padded_cols());
    let one_sum_a_row = x.planes() == 1 && !matches!(weight.scales(), Scales::Group { .. });
    if one_sum_a_row {
        whole_rows(weight, x, out);
    } else {
        by_runs(weight, x, out);
    }
}

/// The fast case: one exact sum a row.
fn whole_rows(weight: &TernaryMatrix, x: &Codes, out: &mut Tile<'_>) {
    let totals: Vec<i32> =
        (0..x.tokens()).map(|token| x.plane(token, 0).iter().map(|x| i32::from(*x)).sum()).collect();
    for group in groups(weight, &out.columns) {
        let rows = group.rows(weight);
        let columns = rows.start - out.columns.start..rows.end - out.columns.start;
        for (token, total) in totals.iter().enumerate() {
            let sums = dot::dot_streams(group.streams, x.plane(token, 0));
            let scale = f64::from(x.scale(token));
            for (row, (out, sum)) in
                rows.clone().zip(out.row_mut(token)[columns.clone()].iter_mut().zip(sums))
            {
                *out += (f64::from(sum - total) / scale * f64::from(row_scale(weight.scales(), row))) as f32;
            }
        }
    }
}

fn row_scale(scales: &Scales, row: usize) -> f32 {
    match scales {
        Scales::Tensor(scale) => *scale,
        Scales::Row(scales) => scales[row],
        Scales::Group { .. } => unreachable!("group scales are applied run by run"),
    }
}

/// The general case: rows are summed in runs of steps that share a scale and cannot overflow.
fn by_runs(weight: &TernaryMatrix, x: &Codes, out: &mut Tile<'_>) {
    let runs = runs(weight);
    let totals: Vec<i64> =
        (0..x.tokens()).flat_map(|token| runs.iter().map(move |run| run.total(x, token))).collect();
    for group in groups(weight, &out.columns) {
        let rows = group.rows(weight);
        let columns = rows.start - out.columns.start..rows.end - out.columns.start;
        for token in 0..x.tokens() {
            let totals = &totals[token * runs.len()..(token + 1) * runs.len()];
            let mut values = [0.0f32; GROUP_ROWS];
            for (run, total) in runs.iter().zip(totals) {
                let sums = run.sums(&group, x, token);
                for ((value, sum), row) in values.iter_mut().zip(sums).zip(rows.clone()) {
                    *value += (sum - total) as f32 * weight.scales().at(row, run.first_col, weight.cols());
                }
            }
            let scale = x.scale(token);
            for (out, value) in out.row_mut(token)[columns.clone()].iter_mut().zip(values) {
                *out += value / scale;
            }
        }
    }
}

/// Consecutive steps of one stream.
struct Run {
    stream: usize,
    first_step: usize,
    steps: usize,
    first_col: usize,
}

impl Run {
    fn x<'a>(&self, plane: &'a [i16]) -> &'a [i16] {
        &plane[self.first_step * STEP_STRIDE + self.stream * CHUNK_COLS..]
    }

    /// `Σ x` over the run.
    fn total(&self, x: &Codes, token: usize) -> i64 {
        self.planes(x, token, |plane| {
            let steps = self.x(plane).chunks(STEP_STRIDE).take(self.steps);
            steps.flat_map(|step| &step[..CHUNK_COLS]).map(|x| i64::from(*x)).sum()
        })
    }

    /// `Σ code · x` over the run, for eight rows.
    fn sums(&self, group: &Group<'_>, x: &Codes, token: usize) -> [i64; GROUP_ROWS] {
        let bytes = &group.streams[self.stream][self.first_step * STEP_BYTES..][..self.steps * STEP_BYTES];
        let plane = |index| -> RowSums { dot::dot_stream(bytes, self.x(x.plane(token, index))) };
        let high = plane(0).map(i64::from);
        if x.planes() == 1 {
            return high;
        }
        let low = plane(1);
        std::array::from_fn(|row| (high[row] << PLANE_BITS) + i64::from(low[row]))
    }

    fn planes(&self, x: &Codes, token: usize, sum: impl Fn(&[i16]) -> i64) -> i64 {
        let high = sum(x.plane(token, 0));
        if x.planes() == 1 { high } else { (high << PLANE_BITS) + sum(x.plane(token, 1)) }
    }
}

fn runs(weight: &TernaryMatrix) -> Vec<Run> {
    let steps_per_stream = weight.padded_cols() / (STREAMS * CHUNK_COLS);
    let scale_cols = match weight.scales() {
        Scales::Group { size, .. } => *size,
        Scales::Tensor(_) | Scales::Row(_) => weight.padded_cols(),
    };
    let mut runs = Vec::new();
    for stream in 0..STREAMS {
        let mut step = 0;
        while step < steps_per_stream {
            let first_col = (stream * steps_per_stream + step) * CHUNK_COLS;
            if first_col >= weight.cols() {
                break;
            }
            let to_scale_end = (scale_cols - first_col % scale_cols) / CHUNK_COLS;
            let steps = to_scale_end.min(steps_per_stream - step).min(MAX_WIDE_STEPS);
            runs.push(Run { stream, first_step: step, steps, first_col });
            step += steps;
        }
    }
    runs
}

/// Eight rows of a matrix.
struct Group<'a> {
    first_row: usize,
    streams: [&'a [u8]; STREAMS],
}

impl Group<'_> {
    /// The group's rows that the matrix has.
    fn rows(&self, weight: &TernaryMatrix) -> Range<usize> {
        self.first_row..weight.rows().min(self.first_row + GROUP_ROWS)
    }
}

/// The groups of `rows`, which start at a whole group.
fn groups<'a>(weight: &'a TernaryMatrix, rows: &Range<usize>) -> impl Iterator<Item = Group<'a>> + use<'a> {
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
