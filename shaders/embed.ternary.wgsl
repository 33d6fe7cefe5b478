// Rows of a ternary embedding table (layout RI8-S4-128, src/quant/ternary.rs), one invocation an element. A
// token whose row is in another part of the table is left to that part's dispatch.

const NONE = 0xffffffffu;

struct Params {
    chunks: u32,
    rows: u32,
    width: u32,
    weights: u32,
    scales: u32,
    /// Columns that share a scale; the whole row where that is `width`.
    group: u32,
    scale: f32,
    out: u32,
    /// The table's row that is the first here.
    first_row: u32,
    unused0: u32,
    unused1: u32,
    unused2: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
/// The position of the first token, then the ids.
@group(0) @binding(2) var<storage, read> input: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(global_invocation_id) invocation: vec3<u32>) {
    let column = invocation.x;
    let token = workgroup.y;
    let id = input[1u + token];
    if (column >= params.width || id < params.first_row || id - params.first_row >= params.rows) {
        return;
    }
    let row = id - params.first_row;
    let octet = row / 8u;
    let slab = octet / 16u;
    let in_slab = min(16u, (params.rows + 7u) / 8u - slab * 16u);
    let chunk = column / 16u;
    let per_stream = params.chunks / 4u;
    let at = params.weights + slab * 32u * params.chunks
        + chunk / per_stream * (in_slab * params.chunks / 2u)
        + (octet % 16u) * (params.chunks / 2u) + 2u * (chunk % per_stream) + row % 8u / 4u;
    let word = weights[at][column % 16u / 4u];
    let code = (word >> (8u * (column % 4u) + 2u * (row % 4u))) & 3u;
    var scale = params.scale;
    if (params.scales != NONE) {
        let groups = (params.width + params.group - 1u) / params.group;
        let place = (octet * groups + column / params.group) * 8u + row % 8u;
        scale = bitcast<f32>(weights[params.scales + place / 4u][place % 4u]);
    }
    out[params.out + token * params.width + column] = (f32(code) - 1.0) * scale;
}
