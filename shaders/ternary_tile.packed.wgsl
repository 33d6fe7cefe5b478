// Ternary products of several tokens with packed products of bytes: a workgroup multiplies eight octets of rows
// with a tile of vectors (a token is PLANES of them). Codes are taken apart once for the tile, into workgroup
// memory; an invocation keeps the sums of eight rows and OWN vectors.
//
// OWN      vectors of an invocation, a multiple of PLANES
// GROUPED  whether every `segment.group` chunks of columns have a scale of their own

@group(0) @binding(1) var<storage, read> codes: array<array<vec4<u32>, RUN>>;
@group(0) @binding(2) var<storage, read> inputs: array<array<vec4<u32>, CHUNKS>>;

const WORKGROUP = 64u;
const TILE_OCTETS = 8u;
/// Invocations that share an octet.
const SHARES = WORKGROUP / TILE_OCTETS;
const VECTORS = SHARES * OWN;
/// Chunks that are in workgroup memory at a time; rows of codes are whole multiples of it.
const STEP = 4u;

/// Weights of 16 columns, `[STEP, 8 rows, TILE_OCTETS]`: neighbours read neighbours.
var<workgroup> tile_weights: array<vec4<u32>, STEP * 8u * TILE_OCTETS>;
/// Activations of 16 columns, `[STEP, OWN, SHARES]`.
var<workgroup> tile_inputs: array<vec4<u32>, STEP * VECTORS>;

/// Sums of eight rows with an invocation's vectors.
struct TileSums {
    lo: array<vec4<i32>, OWN>,
    hi: array<vec4<i32>, OWN>,
}

/// Results of eight rows, a token each.
struct TileValues {
    tokens: array<Values, OWN / PLANES>,
}

fn integer_dot(w: vec4<u32>, x: vec4<u32>) -> i32 {
    return dot4I8Packed(w.x, x.x) + dot4I8Packed(w.y, x.y) + dot4I8Packed(w.z, x.z) + dot4I8Packed(w.w, x.w);
}

/// Codes 0…3 as the signed bytes −1…2.
fn weights_of(packed: vec4<u32>) -> vec4<u32> {
    return ((packed & vec4(DIGITS)) + vec4(0x7f7f7f7fu)) ^ vec4(0x80808080u);
}

/// `second` is 1 for the other product of a gate.
fn load_weights(first_octet: u32, second: u32, chunk: u32, local: u32) {
    let octet = min(first_octet + local / 8u, params.octets - 1u);
    let segment = params.segment[segment_index(octet) + second];
    let place = octet_place(segment, octet - segment.first_octet);
    let own_chunk = local % 8u / 2u;
    let half = local % 2u;
    let column = chunk + own_chunk;
    let run = place.first + column / (RUN / 2u) * place.stride;
    let packed = codes[run][2u * (column % (RUN / 2u)) + half];
    let at = (own_chunk * 8u + 4u * half) * TILE_OCTETS + local / 8u;
    tile_weights[at] = weights_of(packed);
    tile_weights[at + TILE_OCTETS] = weights_of(packed >> vec4(2u));
    tile_weights[at + 2u * TILE_OCTETS] = weights_of(packed >> vec4(4u));
    tile_weights[at + 3u * TILE_OCTETS] = weights_of(packed >> vec4(6u));
}

fn load_inputs(first_token: u32, chunk: u32, local: u32) {
    let first = first_vector() + first_token * PLANES;
    for (var item = local; item < STEP * VECTORS; item += WORKGROUP) {
        let vector = item / STEP;
        let own_chunk = item % STEP;
        let at = (own_chunk * OWN + vector % OWN) * SHARES + vector / OWN;
        tile_inputs[at] = inputs[first + vector][chunk + own_chunk];
    }
}

fn multiply(sums: ptr<function, TileSums>, own_chunk: u32, octet: u32, share: u32) {
    let row = own_chunk * 8u * TILE_OCTETS + octet;
    let w0 = tile_weights[row];
    let w1 = tile_weights[row + TILE_OCTETS];
    let w2 = tile_weights[row + 2u * TILE_OCTETS];
    let w3 = tile_weights[row + 3u * TILE_OCTETS];
    let w4 = tile_weights[row + 4u * TILE_OCTETS];
    let w5 = tile_weights[row + 5u * TILE_OCTETS];
    let w6 = tile_weights[row + 6u * TILE_OCTETS];
    let w7 = tile_weights[row + 7u * TILE_OCTETS];
    for (var own = 0u; own < OWN; own++) {
        let x = tile_inputs[(own_chunk * OWN + own) * SHARES + share];
        (*sums).lo[own] += vec4(integer_dot(w0, x), integer_dot(w1, x), integer_dot(w2, x), integer_dot(w3, x));
        (*sums).hi[own] += vec4(integer_dot(w4, x), integer_dot(w5, x), integer_dot(w6, x), integer_dot(w7, x));
    }
}

/// One number of the digits of a token.
fn joined(sums: ptr<function, array<vec4<i32>, OWN>>, first: u32) -> vec4<f32> {
    let high = vec4<f32>((*sums)[first]);
    if (PLANES == 1u) {
        return high;
    }
    return (high * 65536.0 + vec4<f32>((*sums)[first + 1u]) * 256.0) + vec4<f32>((*sums)[first + 2u]);
}

/// Adds the sums so far, which have a scale in common, and begins new ones.
fn settle(values: ptr<function, TileValues>, sums: ptr<function, TileSums>, scales: Values) {
    var lo = (*sums).lo;
    var hi = (*sums).hi;
    for (var token = 0u; token < OWN / PLANES; token++) {
        (*values).tokens[token].lo += joined(&lo, PLANES * token) * scales.lo;
        (*values).tokens[token].hi += joined(&hi, PLANES * token) * scales.hi;
    }
    *sums = TileSums();
}

fn product(first_octet: u32, second: u32, first_token: u32, local: u32) -> TileValues {
    var values = TileValues();
    var sums = TileSums();
    let octet = min(first_octet + local % TILE_OCTETS, params.octets - 1u);
    let segment = params.segment[segment_index(octet) + second];
    let own_octet = octet - segment.first_octet;
    for (var chunk = 0u; chunk < CHUNKS; chunk += STEP) {
        load_weights(first_octet, second, chunk, local);
        load_inputs(first_token, chunk, local);
        workgroupBarrier();
        for (var own_chunk = 0u; own_chunk < STEP; own_chunk++) {
            multiply(&sums, own_chunk, local % TILE_OCTETS, local / TILE_OCTETS);
            let next = chunk + own_chunk + 1u;
            if (GROUPED && ends_group(segment, next)) {
                settle(&values, &sums, group_scales(segment, own_octet, next - 1u));
            }
        }
        workgroupBarrier();
    }
    if (!GROUPED) {
        settle(&values, &sums, Values(vec4(1.0), vec4(1.0)));
    }
    let scales = row_scales(segment, own_octet, GROUPED);
    for (var token = 0u; token < OWN / PLANES; token++) {
        let unit = facts_of(first_token + local / TILE_OCTETS * (OWN / PLANES) + token).unit;
        values.tokens[token] = finished(values.tokens[token], scales, unit);
    }
    return values;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first_octet = workgroup.x * TILE_OCTETS;
    let first_token = workgroup.y * (VECTORS / PLANES);
    var values = product(first_octet, 0u, first_token, local);
    if (EPILOGUE >= 2u) {
        let ups = product(first_octet, 1u, first_token, local);
        for (var token = 0u; token < OWN / PLANES; token++) {
            let gate = values.tokens[token];
            let up = ups.tokens[token];
            values.tokens[token] = Values(activate(gate.lo) * up.lo, activate(gate.hi) * up.hi);
        }
    }
    let octet = first_octet + local % TILE_OCTETS;
    if (octet >= params.octets) {
        return;
    }
    let segment = params.segment[segment_index(octet)];
    for (var own = 0u; own < OWN / PLANES; own++) {
        let token = first_token + local / TILE_OCTETS * (OWN / PLANES) + own;
        put_octet(segment, octet - segment.first_octet, token, values.tokens[own]);
    }
}
