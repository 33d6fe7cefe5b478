// `x · Wᵀ` for one block of rows of a dense matrix: the LM head, and models that are not ternary. A team takes
// four rows at a time, so that activations are loaded once for them.
//
// TOKENS    tokens that a team multiplies with the rows it has unpacked: 1 or 4
// EPILOGUE  0: store · 1: add to what is there
// VECTORS   `vec4`s of a row
// X_QUADS   `vec4`s of a token's activations, zeros at the end included

const NONE = 0xffffffffu;

struct Params {
    rows: u32,
    tokens: u32,
    /// First `vec4` of the scales of rows, or NONE.
    scales: u32,
    /// Where the first row's result of the first token goes, and how far apart tokens are.
    out: u32,
    out_stride: u32,
    /// First `vec4` of the steps of groups, where the encoding has them.
    steps: u32,
    unused0: u32,
    unused1: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
/// Rows of known length, for pointers: see ternary_linear.wgsl.
@group(0) @binding(1) var<storage, read> weights: array<array<vec4<u32>, VECTORS>>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
/// The buffer of the rows, which scales and steps share with them.
@group(0) @binding(4) var<storage, read> extras: array<vec4<u32>>;

fn dot_of(w: Unpacked, x: Unpacked) -> f32 {
    var sum = dot(w.quad0, x.quad0);
    if (PER_VECTOR > 4u) {
        sum += dot(w.quad1, x.quad1);
    }
    if (PER_VECTOR > 8u) {
        sum += dot(w.quad2, x.quad2) + dot(w.quad3, x.quad3);
    }
    if (PER_VECTOR > 16u) {
        sum += dot(w.quad4, x.quad4) + dot(w.quad5, x.quad5) + dot(w.quad6, x.quad6) + dot(w.quad7, x.quad7);
    }
    return sum;
}

fn activations(token: u32, vector: u32) -> Unpacked {
    let at = vector * (PER_VECTOR / 4u);
    var quads = four_quads(x_quad(token, at) * UNITS, ZERO, ZERO, ZERO);
    if (PER_VECTOR > 4u) {
        quads.quad1 = x_quad(token, at + 1u) * UNITS;
    }
    if (PER_VECTOR > 8u) {
        quads.quad2 = x_quad(token, at + 2u) * UNITS;
        quads.quad3 = x_quad(token, at + 3u) * UNITS;
    }
    if (PER_VECTOR > 16u) {
        quads.quad4 = x_quad(token, at + 4u) * UNITS;
        quads.quad5 = x_quad(token, at + 5u) * UNITS;
        quads.quad6 = x_quad(token, at + 6u) * UNITS;
        quads.quad7 = x_quad(token, at + 7u) * UNITS;
    }
    return quads;
}

fn four_dots(w0: Unpacked, w1: Unpacked, w2: Unpacked, w3: Unpacked, x: Unpacked) -> vec4<f32> {
    return vec4(dot_of(w0, x), dot_of(w1, x), dot_of(w2, x), dot_of(w3, x));
}

fn put(token: u32, row: u32, sums: vec4<f32>) {
    if (token >= params.tokens) {
        return;
    }
    var values = sums;
    if (params.scales != NONE) {
        values *= bitcast<vec4<f32>>(extras[params.scales + row / 4u]);
    }
    let at = params.out + token * params.out_stride + row;
    for (var i = 0u; i < min(params.rows - row, 4u); i++) {
        if (EPILOGUE == 1u) {
            out[at + i] += values[i];
        } else {
            out[at + i] = values[i];
        }
    }
}

fn run(team: Team, teams: u32, tile: u32) {
    let token = tile * TOKENS;
    let groups = (params.rows + 3u) / 4u;
    let rounds = (groups + teams - 1u) / teams;
    for (var round = 0u; round < rounds; round++) {
        let place = round * teams + team.index;
        let row = 4u * min(place, groups - 1u);
        let last = params.rows - 1u;
        let row1 = min(row + 1u, last);
        let row2 = min(row + 2u, last);
        let row3 = min(row + 3u, last);
        let weights0 = &weights[row];
        let weights1 = &weights[row1];
        let weights2 = &weights[row2];
        let weights3 = &weights[row3];
        var sums0 = vec4(0.0);
        var sums1 = vec4(0.0);
        var sums2 = vec4(0.0);
        var sums3 = vec4(0.0);
        for (var vector = team.lane; vector < VECTORS; vector += team.lanes) {
            let w0 = unpack((*weights0)[vector]);
            let w1 = unpack((*weights1)[vector]);
            let w2 = unpack((*weights2)[vector]);
            let w3 = unpack((*weights3)[vector]);
            let steps = vec4(
                step_of(row * VECTORS + vector), step_of(row1 * VECTORS + vector),
                step_of(row2 * VECTORS + vector), step_of(row3 * VECTORS + vector),
            );
            sums0 += steps * four_dots(w0, w1, w2, w3, activations(token, vector));
            if (TOKENS > 1u) {
                sums1 += steps * four_dots(w0, w1, w2, w3, activations(token + 1u, vector));
                sums2 += steps * four_dots(w0, w1, w2, w3, activations(token + 2u, vector));
                sums3 += steps * four_dots(w0, w1, w2, w3, activations(token + 3u, vector));
            }
        }
        sums0 = team_add(sums0);
        if (TOKENS > 1u) {
            sums1 = team_add(sums1);
            sums2 = team_add(sums2);
            sums3 = team_add(sums3);
        }
        if (place < groups && team.lane == 0u) {
            put(token, row, sums0);
            if (TOKENS > 1u) {
                put(token + 1u, row, sums1);
                put(token + 2u, row, sums2);
                put(token + 3u, row, sums3);
            }
        }
    }
}
