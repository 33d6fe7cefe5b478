// `act(gate) ⊙ up` where the two products could not be made in one dispatch.
//
// SILU  x · sigmoid(x) instead of max(x, 0)²

struct Params {
    count: u32,
    gate: u32,
    up: u32,
    unused: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> products: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let at = id.y * workgroups.x * 64u + id.x;
    if (at >= params.count) {
        return;
    }
    let gate = products[params.gate + at];
    var activated = gate / (1.0 + exponential(-gate));
    if (!SILU) {
        activated = max(gate, 0.0) * max(gate, 0.0);
    }
    out[at] = activated * products[params.up + at];
}
