//! Products with weights: one dispatch for all matrices that share an input and a buffer.

use super::context::Context;
use super::kernels::Constant;
use super::prepare::{self, VALUE_ALIGN};
use super::recorder::Dispatch;
use super::tensor::{GpuInput, GpuTensor};
use super::variants::{Rows, Team, Tiles, WORKGROUP};
use super::weights::{GpuDense, GpuMatrix, GpuTernary, RowBlock, TernaryPart, run_vectors};
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
    let matrix = segments[0].matrix;
    let (words, octets) = ternary_params(segments, x.source.tokens, epilogue);
    let chunks = matrix.cols.next_multiple_of(COL_ALIGN) / CHUNK_COLS;
    let constants = [
        ("CHUNKS", Constant::Count(chunks as u32)),
        ("PLANES", Constant::Count(x.planes())),
        ("EPILOGUE", Constant::Count(epilogue.code())),
        ("GROUPED", Constant::Flag(matrix.group.is_some())),
    ];
    let product = Product {
        params: &words,
        octets,
        is_grouped: matrix.group.is_some(),
        cols: matrix.cols,
        constants: constants.to_vec(),
        weights: &segments[0].part.buffer,
        out: segments[0].out.buffer(),
    };
    if x.source.tokens == 1 { product.row(context, x, epilogue) } else { product.tiles(context, x) }
}

/// `struct Params` of `shaders/ternary_linear.wgsl`, and the octets of rows that are computed.
fn ternary_params(segments: &[Segment<'_>], tokens: usize, epilogue: Epilogue) -> (Vec<u32>, u32) {
    let cols = segments[0].matrix.cols;
    let is_gate = matches!(epilogue, Epilogue::Gate(_));
    let mut params = vec![cols.div_ceil(CHUNK_COLS) as u32, tokens as u32, 0, segments.len() as u32];
    let mut octets = 0;
    for Segment { part, matrix, out } in segments {
        params.extend([
            part.codes / run_vectors(cols) as u32,
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
    params[2] = octets;
    params.resize(4 + 8 * MOST_SEGMENTS, 0);
    (params, octets)
}

/// A dispatch of products with ternary weights.
struct Product<'a> {
    params: &'a [u32],
    octets: u32,
    is_grouped: bool,
    cols: usize,
    constants: Vec<(&'static str, Constant)>,
    weights: &'a wgpu::Buffer,
    out: &'a wgpu::Buffer,
}

impl Product<'_> {
    /// One token: teams or invocations share the rows.
    fn row(mut self, context: &Context, x: &GpuInput, epilogue: Epilogue) {
        let mut parts = vec!["exponential", "ternary_linear", "planes"];
        let workgroups = match context.variants.get().rows.within(self.cols) {
            Rows::Singles => {
                self.constants.push(("WORKGROUP", Constant::Count(WORKGROUP)));
                parts.extend(["singles", "ternary_row.singles"]);
                self.octets.div_ceil(WORKGROUP)
            }
            Rows::Packed(team) => {
                self.constants.extend(team.constants());
                let product = if self.is_grouped { "ternary_row.grouped" } else { "ternary_row.whole" };
                parts.extend(["team", team.part(), "integer_dot", product, "ternary_row"]);
                workgroups(context, team, self.octets)
            }
        };
        let mut params = vec![(0, self.params)];
        let mut buffers = vec![(1, self.weights), (3, self.out), (4, self.weights)];
        let inline = prepare::inline(context, x, epilogue);
        if let Some(inline) = &inline {
            parts.extend(inline.parts());
            self.constants.extend(inline.constants());
            buffers.extend(inline.buffers());
            params.push(inline.params());
        } else {
            parts.push("input.buffer");
            buffers.push((2, x.codes(context)));
        }
        context.dispatch(Dispatch {
            kernel: context.kernel(&parts, &self.constants),
            params: &params,
            buffers: &buffers,
            workgroups: [workgroups, 1, 1],
        });
    }

    /// Several tokens: tiles of rows and tokens.
    fn tiles(mut self, context: &Context, x: &GpuInput) {
        let tokens = x.source.tokens as u32;
        let tile = Tile::of(context.variants.get().tiles.within(self.cols), x.planes(), tokens);
        self.constants.extend(tile.constants());
        let mut parts = vec!["exponential", "ternary_linear", "input.tokens"];
        parts.extend(tile.parts());
        let codes = x.codes(context);
        context.dispatch(Dispatch {
            kernel: context.kernel(&parts, &self.constants),
            params: &[(0, self.params)],
            buffers: &[(1, self.weights), (2, codes), (3, self.out), (4, self.weights), (5, codes)],
            workgroups: [self.octets.div_ceil(tile.octets), tokens.div_ceil(tile.tokens), 1],
        });
    }
}

/// What a workgroup of a product with several tokens takes (`shaders/ternary_tile.*.wgsl`).
struct Tile {
    kernel: Tiles,
    octets: u32,
    tokens: u32,
    /// Vectors of an invocation, in the packed kernel.
    own: u32,
}

impl Tile {
    fn of(kernel: Tiles, planes: u32, tokens: u32) -> Self {
        let pairs =
            |most| Self { kernel, octets: PAIRS_OCTETS, tokens: if planes == 1 { most } else { 2 }, own: 0 };
        match kernel {
            Tiles::Pairs => pairs(4),
            Tiles::SharedPairs => pairs(8),
            Tiles::Packed => {
                let own = match planes {
                    1 if tokens <= PACKED_SHARES => 1,
                    1 => PACKED_VECTORS,
                    planes => planes,
                };
                Self { kernel, octets: PACKED_OCTETS, tokens: PACKED_SHARES * own / planes, own }
            }
        }
    }

    fn parts(&self) -> &'static [&'static str] {
        match self.kernel {
            Tiles::Packed => &["ternary_tile.packed"],
            Tiles::Pairs => &["singles", "ternary_tile.pairs", "pairs.own"],
            Tiles::SharedPairs => &["singles", "ternary_tile.pairs", "pairs.shared"],
        }
    }

    fn constants(&self) -> Option<(&'static str, Constant)> {
        (self.kernel == Tiles::Packed).then_some(("OWN", Constant::Count(self.own)))
    }
}

/// Sizes in `shaders/ternary_tile.packed.wgsl`: octets of rows of a workgroup, invocations that share each, and
/// vectors of an invocation where there are many tokens.
const PACKED_OCTETS: u32 = 8;
const PACKED_SHARES: u32 = 8;
const PACKED_VECTORS: u32 = 4;
/// Invocations of a workgroup in `shaders/ternary_tile.pairs.wgsl`, each with an octet.
const PAIRS_OCTETS: u32 = 32;

fn dense(
    context: &Context,
    matrix: &GpuDense,
    block: &RowBlock,
    x: &GpuInput,
    out: &GpuTensor,
    epilogue: Epilogue,
) {
    let tokens = x.source.tokens as u32;
    let (team, tile, values) = match tokens {
        1 => (context.variants.get().rows.team(), 1, "values.one"),
        _ => (Team::Lane, TOKENS, "values.tokens"),
    };
    let mut constants = team.constants();
    constants.extend([
        ("TOKENS", Constant::Count(tile)),
        ("EPILOGUE", Constant::Count(epilogue.code())),
        ("VECTORS", Constant::Count(matrix.vectors as u32)),
        ("X_QUADS", Constant::Count((matrix.cols.next_multiple_of(VALUE_ALIGN) / 4) as u32)),
    ]);
    let kernel = context.kernel(
        &["team", team.part(), "input.none", values, "rows", matrix.encoding.part(), "dense_linear"],
        &constants,
    );
    let params = [
        block.rows as u32,
        tokens,
        block.scales,
        (out.offset + block.first_row) as u32,
        out.width as u32,
        block.steps,
        0,
        0,
    ];
    let teams = block.rows.div_ceil(DENSE_ROWS) as u32;
    context.dispatch(Dispatch {
        kernel,
        params: &[(0, &params)],
        buffers: &[(1, &block.buffer), (2, x.values(context)), (3, out.buffer()), (4, &block.buffer)],
        workgroups: [workgroups(context, team, teams), tokens.div_ceil(tile), 1],
    });
}

/// Workgroups for `teams` teams; each team then has at most a few rounds.
fn workgroups(context: &Context, team: Team, teams: u32) -> u32 {
    let size = context.device.info.subgroup_min_size;
    teams.div_ceil(team.per_workgroup(size)).clamp(1, MOST_WORKGROUPS)
}
