// The float inputs of dense linears: RMSNorm, padded with zeros.

@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let token = workgroup.x;
    let inverse = inverse_rms(measure(token, local).x);
    for (var column = local; column < params.padded; column += WORKGROUP) {
        var value = 0.0;
        if (column < params.width) {
            value = load(token, column) * inverse * norm_weight(column);
        }
        out[token * params.padded + column] = value;
    }
}
