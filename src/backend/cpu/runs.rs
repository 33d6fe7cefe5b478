//! The runs of columns that a ternary product sums at once: whole rows where one scale serves a row,
//! else pieces of a stream that share a scale.

use super::codes::Codes;
use super::dot::{
    self, Chunk, FLOAT_PLANES, GroupBytes, MAX_CHUNKS, PLANE_BITS, PlaneSums, RowSums, STEP_BYTES,
};
use crate::quant::ternary::{CHUNK_COLS, GROUP_ROWS, STREAMS};
use crate::quant::{KernelScales, TernaryMatrix};
use std::ops::{Add, Div, Mul, Range};

/// The runs of one product, in the order in which kernels take them.
pub struct Runs {
    runs: Vec<Run>,
    vectors: usize,
    /// `Σ x` of every vector over every run, `[runs, vectors]`.
    totals: Vec<i32>,
}

/// Columns whose codes are summed before a scale is applied.
pub enum Run {
    /// All columns, four streams in lock step.
    Row { chunks: usize },
    /// Consecutive steps of one stream.
    Stream { stream: usize, steps: Range<usize>, first_col: usize },
}

impl Runs {
    pub fn new(weight: &TernaryMatrix, x: &Codes) -> Self {
        let runs = split(weight);
        let vectors = x.tokens() * x.planes();
        let totals = runs.iter().flat_map(|run| (0..vectors).map(|vector| run.total(x, vector))).collect();
        Self { runs, vectors, totals }
    }

    pub fn first(&self) -> &Run {
        &self.runs[0]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// `Σ x` of a vector over run `index`.
    pub fn total(&self, index: usize, vector: usize) -> i32 {
        self.totals[index * self.vectors + vector]
    }

    /// Whether every run is a whole row, so that sums meet their scales once.
    pub fn are_rows(&self) -> bool {
        self.runs.iter().all(|run| matches!(run, Run::Row { .. }))
    }

    /// Appends the next lower plane of an activation to the sums of the higher ones: `value` becomes
    /// `value · 2^PLANE_BITS + Σ weight · x`.
    #[inline(always)]
    pub fn add_plane<R: Real, const ROWS: usize>(value: &mut [R; ROWS], sums: &[i32; ROWS], total: i32) {
        for (value, sum) in value.iter_mut().zip(sums) {
            *value = *value * R::from_int(1 << PLANE_BITS) + R::from_int(sum - total);
        }
    }
}

/// What sums become when they meet their scales: `f64` where that happens once a row, so that a product
/// is rounded once; `f32` where it happens for every group of columns.
pub trait Real: Copy + Default + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    fn from_int(value: i32) -> Self;
    fn from_single(value: f32) -> Self;
    fn into_single(self) -> f32;
}

impl Real for f32 {
    fn from_int(value: i32) -> Self {
        value as f32
    }
    fn from_single(value: f32) -> Self {
        value
    }
    fn into_single(self) -> f32 {
        self
    }
}

impl Real for f64 {
    fn from_int(value: i32) -> Self {
        f64::from(value)
    }
    fn from_single(value: f32) -> Self {
        f64::from(value)
    }
    fn into_single(self) -> f32 {
        self as f32
    }
}

impl Run {
    /// The run's part of a vector. A [`Run::Stream`] owns every fourth chunk of it.
    pub fn chunks(&self) -> Range<usize> {
        match self {
            Run::Row { chunks } => 0..*chunks,
            Run::Stream { stream, steps, .. } => {
                steps.start * STREAMS + stream..(steps.end - 1) * STREAMS + stream + 1
            }
        }
    }

    fn total(&self, x: &Codes, vector: usize) -> i32 {
        match self {
            Run::Row { .. } => x.total(vector),
            Run::Stream { .. } => {
                let chunks = x.vector(vector)[self.chunks()].iter().step_by(STREAMS);
                chunks.map(|chunk| chunk.0.iter().map(|x| i32::from(*x)).sum::<i32>()).sum()
            }
        }
    }

    /// `Σ code · x` over the run, for eight rows.
    #[inline(always)]
    pub fn sums(&self, weights: GroupBytes<'_>, vector: &[Chunk]) -> RowSums {
        match self {
            Run::Row { .. } => dot::dot_streams(weights, vector),
            Run::Stream { stream, steps, .. } => {
                let bytes = &weights[*stream][steps.start * STEP_BYTES..steps.end * STEP_BYTES];
                dot::dot_stream(bytes, &vector[self.chunks()])
            }
        }
    }

    /// [`Self::sums`] for the planes of a float activation, `x` being its vectors.
    #[inline(always)]
    pub fn plane_sums(&self, weights: GroupBytes<'_>, x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
        match self {
            Run::Row { .. } => dot::dot_streams_planes(weights, x),
            Run::Stream { stream, steps, .. } => {
                let bytes = &weights[*stream][steps.start * STEP_BYTES..steps.end * STEP_BYTES];
                dot::dot_stream_planes(bytes, x.map(|x| &x[self.chunks()]))
            }
        }
    }

    /// The scales of eight rows in the run; rows that the matrix lacks have any.
    #[inline(always)]
    pub fn scales(&self, weight: &TernaryMatrix, first_row: usize) -> [f32; GROUP_ROWS] {
        match (weight.scales(), self) {
            (KernelScales::Tensor(scale), _) => [*scale; GROUP_ROWS],
            (KernelScales::Row(scales), _) => {
                std::array::from_fn(|row| scales.get(first_row + row).copied().unwrap_or_default())
            }
            (KernelScales::Group { size, values }, Run::Stream { first_col, .. }) => {
                values[first_row / GROUP_ROWS * weight.cols().div_ceil(*size) + first_col / size]
            }
            (KernelScales::Group { .. }, Run::Row { .. }) => {
                unreachable!("rows with group scales are split")
            }
        }
    }
}

fn split(weight: &TernaryMatrix) -> Vec<Run> {
    let chunks = weight.padded_cols() / CHUNK_COLS;
    let scale_cols = match weight.scales() {
        KernelScales::Group { size, .. } => *size,
        KernelScales::Tensor(_) | KernelScales::Row(_) if chunks <= MAX_CHUNKS => {
            return vec![Run::Row { chunks }];
        }
        KernelScales::Tensor(_) | KernelScales::Row(_) => weight.padded_cols(),
    };
    let steps_per_stream = chunks / STREAMS;
    let mut runs = Vec::new();
    for stream in 0..STREAMS {
        let mut step = 0;
        while step < steps_per_stream {
            let first_col = (stream * steps_per_stream + step) * CHUNK_COLS;
            if first_col >= weight.cols() {
                break;
            }
            let to_scale_end = (scale_cols - first_col % scale_cols) / CHUNK_COLS;
            let end = steps_per_stream.min(step + to_scale_end.min(MAX_CHUNKS));
            runs.push(Run::Stream { stream, steps: step..end, first_col });
            step = end;
        }
    }
    // Stream after stream at the same depth, so that four addresses are read side by side.
    runs.sort_by_key(|run| match run {
        Run::Row { .. } => (0, 0),
        Run::Stream { stream, steps, .. } => (steps.start, *stream),
    });
    runs
}
