// `x · Wᵀ` for ternary matrices in the layout RI8-S4-128 (src/quant/ternary.rs), used in place: two `vec4<u32>`
// are 16 columns of eight rows, and one of activations serves all eight. A code is weight + 1, so that
// `Σ weight · x = Σ code · x − Σ x`.
//
// The input (input.*.wgsl) is a `vec4` for each token (what one unit is worth, the sums of its planes), then
// `[tokens, planes, chunks]`.
//
// VECTORS  vectors of activations that a team multiplies with a decoded chunk: tokens, or the PLANES of one
// PLANES   1: int8 activations · 3: 24-bit fixed point in three signed digits, the highest first
// EPILOGUE 0: store · 1: add to what is there · 2, 3: `act(gate) · up` with squared ReLU, SiLU

const STREAMS = 4u;
const SLAB_OCTETS = 16u;
const DIGITS = 0x03030303u;
const NONE = 0xffffffffu;

/// One of the matrices that a dispatch multiplies.
struct Segment {
    /// First `vec4` of the codes.
    weights: u32,
    /// First `vec4` of row or group scales, or NONE.
    scales: u32,
    rows: u32,
    /// Its first octet of rows among those of the dispatch.
    first_octet: u32,
    /// First element of its result, `[tokens, rows]`.
    out: u32,
    /// The matrix's scale, where it has one.
    scale: f32,
    /// Chunks that share a group scale.
    group: u32,
    /// How far apart tokens are in the result.
    stride: u32,
}

struct Params {
    /// Chunks of 16 columns, padded to whole streams, and those that are not all padding.
    chunks: u32,
    filled_chunks: u32,
    tokens: u32,
    octets: u32,
    segments: u32,
    unused0: u32,
    unused1: u32,
    unused2: u32,
    segment: array<Segment, 3>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

/// Codes of 16 columns, a `vec4` a row.
struct Codes {
    row0: vec4<u32>, row1: vec4<u32>, row2: vec4<u32>, row3: vec4<u32>,
    row4: vec4<u32>, row5: vec4<u32>, row6: vec4<u32>, row7: vec4<u32>,
}

/// Results of eight rows, for up to four tokens.
struct Values {
    lo0: vec4<f32>, hi0: vec4<f32>,
    lo1: vec4<f32>, hi1: vec4<f32>,
    lo2: vec4<f32>, hi2: vec4<f32>,
    lo3: vec4<f32>, hi3: vec4<f32>,
}

/// Where the first stream of an octet begins, and how far apart streams are.
struct Place {
    first: u32,
    stride: u32,
}

fn octet_place(segment: Segment, octet: u32) -> Place {
    let octets = (segment.rows + 7u) / 8u;
    let slab = octet / SLAB_OCTETS;
    let in_slab = min(SLAB_OCTETS, octets - slab * SLAB_OCTETS);
    let first = segment.weights + slab * SLAB_OCTETS * 2u * params.chunks
        + (octet % SLAB_OCTETS) * params.chunks / 2u;
    return Place(first, in_slab * params.chunks / 2u);
}

fn decode(at: u32) -> Codes {
    let lo = weights[at];
    let hi = weights[at + 1u];
    let mask = vec4(DIGITS);
    return Codes(
        lo & mask, (lo >> vec4(2u)) & mask, (lo >> vec4(4u)) & mask, (lo >> vec4(6u)) & mask,
        hi & mask, (hi >> vec4(2u)) & mask, (hi >> vec4(4u)) & mask, (hi >> vec4(6u)) & mask,
    );
}

fn dot_lo(codes: Codes, x: vec4<u32>) -> vec4<i32> {
    return vec4(
        integer_dot(codes.row0, x), integer_dot(codes.row1, x),
        integer_dot(codes.row2, x), integer_dot(codes.row3, x),
    );
}

fn dot_hi(codes: Codes, x: vec4<u32>) -> vec4<i32> {
    return vec4(
        integer_dot(codes.row4, x), integer_dot(codes.row5, x),
        integer_dot(codes.row6, x), integer_dot(codes.row7, x),
    );
}

fn first_vector(vector: u32) -> u32 {
    return params.tokens + vector * params.chunks;
}

fn token_unit(token: u32) -> f32 {
    return bitcast<f32>(input_at(token).x);
}

fn token_total(token: u32) -> i32 {
    return bitcast<i32>(input_at(token).y);
}

fn activate(gate: vec4<f32>) -> vec4<f32> {
    if (EPILOGUE == 2u) {
        let positive = max(gate, vec4(0.0));
        return positive * positive;
    }
    return gate / (1.0 + vec4(
        exponential(-gate.x), exponential(-gate.y), exponential(-gate.z), exponential(-gate.w),
    ));
}

fn gated(gate: Values, up: Values) -> Values {
    return Values(
        activate(gate.lo0) * up.lo0, activate(gate.hi0) * up.hi0,
        activate(gate.lo1) * up.lo1, activate(gate.hi1) * up.hi1,
        activate(gate.lo2) * up.lo2, activate(gate.hi2) * up.hi2,
        activate(gate.lo3) * up.lo3, activate(gate.hi3) * up.hi3,
    );
}

fn put(at: u32, left: u32, value: vec4<f32>) {
    for (var row = 0u; row < min(left, 4u); row++) {
        if (EPILOGUE == 1u) {
            out[at + row] += value[row];
        } else {
            out[at + row] = value[row];
        }
    }
}

fn put_token(segment: Segment, token: u32, row: u32, lo: vec4<f32>, hi: vec4<f32>) {
    if (token >= params.tokens) {
        return;
    }
    let at = segment.out + token * segment.stride + row;
    let left = segment.rows - row;
    put(at, left, lo);
    if (left > 4u) {
        put(at + 4u, left - 4u, hi);
    }
}

/// Computes the team's share of the rows, one of `teams`, for the tokens of one tile.
fn run(team: Team, teams: u32, tile: u32) {
    let token = tile * (VECTORS / PLANES);
    let rounds = (params.octets + teams - 1u) / teams;
    for (var round = 0u; round < rounds; round++) {
        let place = round * teams + team.index;
        // Teams without rows compute the last ones too: they must meet the others at barriers.
        let octet = min(place, params.octets - 1u);
        var index = 0u;
        if (EPILOGUE < 2u) {
            while (index + 1u < params.segments && octet >= params.segment[index + 1u].first_octet) {
                index++;
            }
        }
        let segment = params.segment[index];
        let row = octet - segment.first_octet;
        var values = product(segment, row, token * PLANES, team);
        if (EPILOGUE >= 2u) {
            values = gated(values, product(params.segment[1], row, token * PLANES, team));
        }
        if (place < params.octets && team.lane == 0u) {
            put_token(segment, token, 8u * row, values.lo0, values.hi0);
            if (VECTORS > PLANES) {
                put_token(segment, token + 1u, 8u * row, values.lo1, values.hi1);
                put_token(segment, token + 2u, 8u * row, values.lo2, values.hi2);
                put_token(segment, token + 3u, 8u * row, values.lo3, values.hi3);
            }
        }
    }
}
