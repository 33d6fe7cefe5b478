//! Products with weights: one dispatch for all matrices that share an input and a buffer.

use super::context::Context;
use super::kernels::Constant;
use super::prepare::{self, VALUE_ALIGN};
use super::recorder::Dispatch;
use super::tensor::{GpuInput, GpuTensor};
use super::variants::Team;
use super::weights::{GpuDense, GpuMatrix, GpuTernary, RowBlock, TernaryPart};
use crate::model::Activation;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN, GROUP_ROWS};

/// Matrices of one dispatch at most.
const MOST_SEGMENTS: usize = 3;
/// Tokens that share a decoded weight, where there are several.
const TOKENS: u32 = 4;
/// Rows that a team of a dense linear takes at a time.
const DENSE_ROWS: usize = 4;
/// Workgroups of a dispatch at most, in one dimension.
const MOST_WORKGROUPS: u32 = 65_535;

/// What becomes of products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epilogue {
    Store,
    Add,
    Gate(Activation),
}

impl Epilogue {
    fn code(self) -> u32 {
        match self {
            Epilogue::Store => 0,
            Epilogue::Add => 1,
            Epilogue::Gate(Activation::Relu2) => 2,
            Epilogue::Gate(Activation::Silu) => 3,
        }
    }
}

/// A part of a ternary matrix and where its result goes.
struct Segment<'a> {
    part: &'a TernaryPart,
    matrix: &'a GpuTernary,
    out: &'a GpuTensor,
}

/// `outs[i] = x · weights[i]ᵀ`, or `+=`; outs lie in one buffer.
pub fn linears<const N: usize>(
    context: &Context,
    weights: [&GpuMatrix; N],
    x: &GpuInput,
    outs: [&GpuTensor; N],
    epilogue: Epilogue,
) {
    let mut segments: Vec<Segment<'_>> = Vec::new();
    for (weight, out) in weights.into_iter().zip(outs) {
        match weight {
            GpuMatrix::Ternary(matrix) => {
                segments.extend(matrix.parts.iter().map(|part| Segment { part, matrix, out }));
            }
            GpuMatrix::Dense(matrix) => {
                for block in &matrix.blocks {
                    dense(context, matrix, block, x, out, epilogue);
                }
            }
        }
    }
    let shares = |a: &Segment<'_>, b: &Segment<'_>| {
        a.part.buffer == b.part.buffer && a.matrix.group.is_some() == b.matrix.group.is_some()
    };
    for run in segments.chunk_by(shares) {
        for segments in run.chunks(MOST_SEGMENTS) {
            ternary(context, segments, x, epilogue);
        }
    }
}

/// `act(x · gateᵀ) ⊙ (x · upᵀ)`
pub fn gate_up(
    context: &Context,
    gate: &GpuMatrix,
    up: &GpuMatrix,
    x: &GpuInput,
    act: Activation,
) -> GpuTensor {
    let tokens = x.source.tokens;
    let width = gate.rows();
    if let (GpuMatrix::Ternary(gate), GpuMatrix::Ternary(up)) = (gate, up)
        && let ([gate_part], [up_part]) = (&gate.parts[..], &up.parts[..])
        && gate_part.buffer == up_part.buffer
        && gate.group.is_some() == up.group.is_some()
    {
        let out = GpuTensor::new(context, tokens, width);
        let segments = [
            Segment { part: gate_part, matrix: gate, out: &out },
            Segment { part: up_part, matrix: up, out: &out },
        ];
        ternary(context, &segments, x, Epilogue::Gate(act));
        return out;
    }
    let [gates, ups] = GpuTensor::side_by_side(context, tokens, [width, width]);
    linears(context, [gate, up], x, [&gates, &ups], Epilogue::Store);
    combine(context, &gates, &ups, act)
}

fn combine(context: &Context, gate: &GpuTensor, up: &GpuTensor, act: Activation) -> GpuTensor {
    let out = GpuTensor::new(context, gate.tokens, gate.width);
    let count = (gate.tokens * gate.width) as u32;
    let groups = count.div_ceil(64);
    let rows = groups.div_ceil(MOST_WORKGROUPS);
    context.dispatch(Dispatch {
        kernel: context
            .kernel(&["exponential", "combine"], &[("SILU", Constant::Flag(act == Activation::Silu))]),
        params: &[(0, &[count, gate.offset as u32, up.offset as u32, 0])],
        buffers: &[(1, gate.buffer()), (2, out.buffer())],
        workgroups: [groups.div_ceil(rows), rows, 1],
    });
    out
}

fn ternary(context: &Context, segments: &[Segment<'_>], x: &GpuInput, epilogue: Epilogue) {
    let tokens = x.source.tokens as u32;
    let planes = x.planes();
    let cols = segments[0].matrix.cols;
    let is_grouped = segments[0].matrix.group.is_some();
    let is_gate = matches!(epilogue, Epilogue::Gate(_));
    let (team, vectors) = match (tokens, planes) {
        (1, _) => (context.variants.get().team, planes),
        (_, 1) => (Team::Lane, TOKENS),
        _ => (Team::Lane, planes),
    };
    let mut params = vec![
        (cols.next_multiple_of(COL_ALIGN) / CHUNK_COLS) as u32,
        cols.div_ceil(CHUNK_COLS) as u32,
        tokens,
        0,
        segments.len() as u32,
        0,
        0,
        0,
    ];
    let mut octets = 0;
    for Segment { part, matrix, out } in segments {
        params.extend([
            part.codes,
            part.scales,
            part.rows as u32,
            if is_gate { 0 } else { octets },
            (out.offset + part.first_row) as u32,
            part.scale.to_bits(),
            matrix.group.unwrap_or(1) as u32,
            out.width as u32,
        ]);
        octets += part.rows.div_ceil(GROUP_ROWS) as u32;
    }
    if is_gate {
        octets /= 2;
    }
    params[3] = octets;
    params.resize(8 + 8 * MOST_SEGMENTS, 0);

    let product = if is_grouped { "ternary_linear.grouped" } else { "ternary_linear.whole" };
    let mut constants = team.constants();
    constants.extend([
        ("VECTORS", Constant::Count(vectors)),
        ("PLANES", Constant::Count(planes)),
        ("EPILOGUE", Constant::Count(epilogue.code())),
    ]);
    let mut parts = vec![
        "exponential",
        "team",
        team.part(),
        context.variants.get().dot.part(),
        product,
        "ternary_linear",
    ];
    let (buffer, out) = (&segments[0].part.buffer, segments[0].out.buffer());
    let workgroups = [workgroups(context, team, octets), tokens.div_ceil(vectors / planes), 1];
    if let Some(inline) = prepare::inline(context, x) {
        parts.extend(inline.parts());
        constants.extend(inline.constants());
        let mut buffers = vec![(1, buffer), (3, out)];
        buffers.extend(inline.buffers());
        context.dispatch(Dispatch {
            kernel: context.kernel(&parts, &constants),
            params: &[(0, &params), inline.params()],
            buffers: &buffers,
            workgroups,
        });
        return;
    }
    parts.push("input.buffer");
    context.dispatch(Dispatch {
        kernel: context.kernel(&parts, &constants),
        params: &[(0, &params)],
        buffers: &[(1, buffer), (2, x.codes(context)), (3, out)],
        workgroups,
    });
}

fn dense(
    context: &Context,
    matrix: &GpuDense,
    block: &RowBlock,
    x: &GpuInput,
    out: &GpuTensor,
    epilogue: Epilogue,
) {
    let tokens = x.source.tokens as u32;
    let (team, tile) = if tokens == 1 { (context.variants.get().team, 1) } else { (Team::Lane, TOKENS) };
    let mut constants = team.constants();
    constants.extend([("TOKENS", Constant::Count(tile)), ("EPILOGUE", Constant::Count(epilogue.code()))]);
    let kernel = context.kernel(
        &["team", team.part(), "input.none", "rows", matrix.encoding.part(), "dense_linear"],
        &constants,
    );
    let params = [
        matrix.vectors as u32,
        block.rows as u32,
        tokens,
        (matrix.cols.next_multiple_of(VALUE_ALIGN) / 4) as u32,
        block.scales,
        (out.offset + block.first_row) as u32,
        out.width as u32,
        block.steps,
    ];
    let teams = block.rows.div_ceil(DENSE_ROWS) as u32;
    context.dispatch(Dispatch {
        kernel,
        params: &[(0, &params)],
        buffers: &[(1, &block.buffer), (2, x.values(context)), (3, out.buffer())],
        workgroups: [workgroups(context, team, teams), tokens.div_ceil(tile), 1],
    });
}

/// Workgroups for `teams` teams; each team then has at most a few rounds.
fn workgroups(context: &Context, team: Team, teams: u32) -> u32 {
    let size = context.device.info.subgroup_min_size;
    teams.div_ceil(team.per_workgroup(size)).clamp(1, MOST_WORKGROUPS)
}
