//! The runs of columns that a ternary product sums at once where a row has several scales, or activations several
//! planes: pieces of a stream that share a scale.

use super::codes::Codes;
use super::dot::{Chunk, GroupBytes, PLANE_BITS, RUN_STEPS, RunPlanes, STEP_BYTES};
use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, STREAMS};
use crate::quant::{KernelScales, TernaryMatrix};
use std::ops::Range;

/// The runs of one product, in the order in which kernels take them.
pub struct Runs {
    runs: Vec<Run>,
    tokens: usize,
    /// `Σ x` of every token over every run, `[runs, tokens]`, modulo 2³² as kernels' sums are.
    totals: Vec<i32>,
}

/// At most [`RUN_STEPS`] consecutive steps of one stream.
pub struct Run {
    stream: usize,
    steps: Range<usize>,
    /// Which of a row's scales the run has.
    scale: usize,
}

/// The scales of eight rows.
pub enum GroupScales<'a> {
    One([f32; GROUP_ROWS]),
    Several(&'a [[f32; GROUP_ROWS]]),
}

impl Runs {
    pub fn new(weight: &TernaryMatrix, x: &Codes) -> Self {
        let runs = split(weight);
        let tokens = x.tokens();
        let totals = runs.iter().flat_map(|run| (0..tokens).map(|token| run.total(x, token))).collect();
        Self { runs, tokens, totals }
    }

    /// Every run with its `Σ x` of every token.
    pub fn iter(&self) -> impl Iterator<Item = (&Run, &[i32])> {
        self.runs.iter().zip(self.totals.chunks_exact(self.tokens))
    }
}

impl Run {
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The run's part of a token.
    #[inline(always)]
    pub fn of_token<'a>(&self, x: &'a Codes, token: usize) -> RunPlanes<'a> {
        let first = token * x.planes() * x.chunks() + self.steps.start * STREAMS + self.stream;
        RunPlanes { chunks: &x.vectors()[first..], stride: x.chunks() }
    }

    /// The run's part of eight rows.
    #[inline(always)]
    pub fn of_group<'a>(&self, group: &GroupBytes<'a>) -> &'a [u8] {
        &group[self.stream][self.steps.start * STEP_BYTES..self.steps.end * STEP_BYTES]
    }

    /// The run's chunks of a plane of a token.
    pub fn of_plane<'a>(&self, x: &'a Codes, token: usize, plane: usize) -> impl Iterator<Item = &'a Chunk> {
        self.of_token(x, token).chunks[plane * x.chunks()..].iter().step_by(STREAMS).take(self.steps.len())
    }

    fn total(&self, x: &Codes, token: usize) -> i32 {
        (0..x.planes()).fold(0i32, |total, plane| {
            let chunks = self.of_plane(x, token, plane);
            let sum: i32 = chunks.map(|chunk| chunk.0.iter().map(|x| i32::from(*x)).sum::<i32>()).sum();
            (total << PLANE_BITS).wrapping_add(sum)
        })
    }
}

impl<'a> GroupScales<'a> {
    /// Those of the rows from `first_row` on; rows that the matrix lacks have any.
    pub fn new(weight: &'a TernaryMatrix, first_row: usize) -> Self {
        match weight.scales() {
            KernelScales::Group { size, values } => {
                let of_row = weight.cols().div_ceil(*size);
                Self::Several(&values[first_row / GROUP_ROWS * of_row..][..of_row])
            }
            scales => Self::One(scales.of_rows(first_row)),
        }
    }

    #[inline(always)]
    pub fn of_run(&self, run: &Run) -> &[f32; GROUP_ROWS] {
        match self {
            Self::One(scales) => scales,
            Self::Several(scales) => &scales[run.scale],
        }
    }
}

fn split(weight: &TernaryMatrix) -> Vec<Run> {
    let stream_steps = weight.padded_cols() / CHUNK_COLS / STREAMS;
    let scale_cols = match weight.scales() {
        KernelScales::Group { size, .. } => *size,
        KernelScales::Tensor(_) | KernelScales::Row(_) => weight.padded_cols(),
    };
    let mut runs = Vec::new();
    for stream in 0..STREAMS {
        let mut step = 0;
        while step < stream_steps {
            let first_col = (stream * stream_steps + step) * CHUNK_COLS;
            if first_col >= weight.cols() {
                break;
            }
            let to_scale_end = (scale_cols - first_col % scale_cols) / CHUNK_COLS;
            let end = stream_steps.min(step + to_scale_end.min(RUN_STEPS));
            runs.push(Run { stream, steps: step..end, scale: first_col / scale_cols });
            step = end;
        }
    }
    // Stream after stream at the same depth, so that four addresses are read side by side.
    runs.sort_by_key(|run| (run.steps.start, run.stream));
    runs
}
