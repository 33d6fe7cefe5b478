// Rows of a dense embedding table, one block of it a dispatch: tokens whose row is in another block are left
// to that block's dispatch.

const NONE = 0xffffffffu;

struct Params {
    vectors: u32,
    first_row: u32,
    rows: u32,
    width: u32,
    scales: u32,
    out: u32,
    /// First `vec4` of the steps of groups, where the encoding has them.
    steps: u32,
    unused: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
/// The position of the first token, then the ids.
@group(0) @binding(2) var<storage, read> input: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
/// The buffer of the rows, which scales and steps share with them.
@group(0) @binding(4) var<storage, read> extras: array<vec4<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(global_invocation_id) id: vec3<u32>) {
    let vector = id.x;
    let token = workgroup.y;
    let row = input[1u + token];
    if (vector >= params.vectors || row < params.first_row || row - params.first_row >= params.rows) {
        return;
    }
    let place = row - params.first_row;
    var scale = 1.0;
    if (params.scales != NONE) {
        scale = bitcast<f32>(extras[params.scales + place / 4u][place % 4u]);
    }
    let at = place * params.vectors + vector;
    scale *= step_of(at);
    let values = unpack(weights[at]);
    let units = scale * UNITS;
    let column = vector * PER_VECTOR;
    put(token, column, values.quad0 * units);
    if (PER_VECTOR > 4u) {
        put(token, column + 4u, values.quad1 * units);
    }
    if (PER_VECTOR > 8u) {
        put(token, column + 8u, values.quad2 * units);
        put(token, column + 12u, values.quad3 * units);
    }
    if (PER_VECTOR > 16u) {
        put(token, column + 16u, values.quad4 * units);
        put(token, column + 20u, values.quad5 * units);
        put(token, column + 24u, values.quad6 * units);
        put(token, column + 28u, values.quad7 * units);
    }
}

fn put(token: u32, column: u32, values: vec4<f32>) {
    for (var i = 0u; i < 4u; i++) {
        if (column + i < params.width) {
            out[params.out + token * params.width + column + i] = values[i];
        }
    }
}
