// Integer inputs that several products share, in the layout of ternary_linear.wgsl: a workgroup a token.

@group(0) @binding(3) var<storage, read_write> out: array<vec4<u32>>;

fn put_facts(token: u32, value: vec4<u32>) {
    out[token] = value;
}

fn put_chunk(token: u32, plane: u32, chunk: u32, value: vec4<u32>) {
    let chunks = preparation.padded / 16u;
    let first_vector = (preparation.tokens + chunks - 1u) / chunks;
    out[(first_vector + token * PLANES + plane) * chunks + chunk] = value;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    quantize(workgroup.x, local);
}
