// `x · Wᵀ` for ternary matrices in the layout RI8-S4-128 (src/quant/ternary.rs), used in place: two `vec4<u32>`
// are 16 columns of eight rows, and one of activations serves all eight. A code is weight + 1, so that
// `Σ weight · x = Σ code · x − Σ x`.
//
// The input is `[tokens, planes, CHUNKS]`, a vector of chunks for each plane, after as many whole vectors as hold a
// `vec4` for each token: what one unit is worth, the sums of its planes.
//
// Codes and inputs are arrays of arrays of known length, of which each kernel takes what it is at work on by pointer:
// software adapters ask for the length of an array without one, and divide by its stride, wherever they read it.
//
// CHUNKS   chunks of 16 columns, padded to whole streams
// PLANES   1: int8 activations · 3: 24-bit fixed point in three signed digits, the highest first
// EPILOGUE 0: store · 1: add to what is there · 2, 3: `act(gate) · up` with squared ReLU, SiLU

const STREAMS = 4u;
/// `vec4`s of codes of an octet of rows in a stream: two for a chunk.
const RUN = CHUNKS / 2u;
const SLAB_OCTETS = 16u;
const DIGITS = 0x03030303u;
const NONE = 0xffffffffu;

/// One of the matrices that a dispatch multiplies.
struct Segment {
    /// First run of the codes.
    codes: u32,
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
    /// Chunks that are not all padding.
    filled_chunks: u32,
    tokens: u32,
    octets: u32,
    segments: u32,
    segment: array<Segment, 3>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
/// The buffer of the codes, which scales share with them.
@group(0) @binding(4) var<storage, read> scales: array<vec4<f32>>;

/// Results of eight rows.
struct Values {
    lo: vec4<f32>,
    hi: vec4<f32>,
}

/// The run of an octet in the first stream, and how far apart streams are.
struct Place {
    first: u32,
    stride: u32,
}

fn octet_place(segment: Segment, octet: u32) -> Place {
    let octets = (segment.rows + 7u) / 8u;
    let slab = octet / SLAB_OCTETS;
    let in_slab = min(SLAB_OCTETS, octets - slab * SLAB_OCTETS);
    return Place(segment.codes + slab * SLAB_OCTETS * STREAMS + octet % SLAB_OCTETS, in_slab);
}

/// Vectors of the input that hold facts.
fn first_vector() -> u32 {
    return (params.tokens + CHUNKS - 1u) / CHUNKS;
}

/// What one unit of a token is worth, and the sums of its planes.
struct Facts {
    unit: f32,
    totals: vec3<i32>,
}

fn facts_of(token: u32) -> Facts {
    let words = input_facts(token);
    return Facts(bitcast<f32>(words.x), bitcast<vec3<i32>>(words.yzw));
}

/// The segment of an octet of the dispatch.
fn segment_index(octet: u32) -> u32 {
    var index = 0u;
    if (EPILOGUE < 2u) {
        while (index + 1u < params.segments && octet >= params.segment[index + 1u].first_octet) {
            index++;
        }
    }
    return index;
}

/// The scales of eight rows that are yet to be applied: those of groups were.
fn row_scales(segment: Segment, octet: u32, is_grouped: bool) -> Values {
    if (is_grouped) {
        return Values(vec4(1.0), vec4(1.0));
    }
    if (segment.scales == NONE) {
        return Values(vec4(segment.scale), vec4(segment.scale));
    }
    let at = segment.scales + 2u * octet;
    return Values(scales[at], scales[at + 1u]);
}

/// Results of a token's sums. Products are rounded in the same order in every kernel: the quantiser of the next
/// layer may fall the other way over a last bit.
fn finished(sums: Values, scales: Values, unit: f32) -> Values {
    if (PLANES == 3u) {
        return Values(sums.lo * scales.lo * unit, sums.hi * scales.hi * unit);
    }
    return Values(sums.lo * (scales.lo * unit), sums.hi * (scales.hi * unit));
}

/// The scales of eight rows in a chunk: those of all groups of eight rows lie side by side.
fn group_scales(segment: Segment, octet: u32, chunk: u32) -> Values {
    let groups = (params.filled_chunks + segment.group - 1u) / segment.group;
    let at = segment.scales + 2u * (octet * groups + chunk / segment.group);
    return Values(scales[at], scales[at + 1u]);
}

/// Whether a group of columns that share a scale ends before `chunk`.
fn ends_group(segment: Segment, chunk: u32) -> bool {
    return chunk <= params.filled_chunks && (chunk % segment.group == 0u || chunk == params.filled_chunks);
}

fn add_scaled(values: Values, sums: Values, scales: Values) -> Values {
    return Values(values.lo + sums.lo * scales.lo, values.hi + sums.hi * scales.hi);
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

fn put(at: u32, left: u32, value: vec4<f32>) {
    for (var row = 0u; row < min(left, 4u); row++) {
        if (EPILOGUE == 1u) {
            out[at + row] += value[row];
        } else {
            out[at + row] = value[row];
        }
    }
}

/// Puts eight rows' results of a token where they go.
fn put_octet(segment: Segment, octet: u32, token: u32, values: Values) {
    if (token >= params.tokens) {
        return;
    }
    let row = 8u * octet;
    let at = segment.out + token * segment.stride + row;
    let left = segment.rows - row;
    put(at, left, values.lo);
    if (left > 4u) {
        put(at + 4u, left - 4u, values.hi);
    }
}

