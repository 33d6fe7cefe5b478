// Integer inputs that several products share: a workgroup a token.

@group(0) @binding(3) var<storage, read_write> out: array<vec4<u32>>;

fn put_input(at: u32, value: vec4<u32>) {
    out[at] = value;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    quantize(workgroup.x, local);
}
