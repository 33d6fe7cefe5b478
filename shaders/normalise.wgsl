// The float inputs of dense linears: RMSNorm, padded with zeros.

@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let token = workgroup.x;
    let inverse = inverse_rms(measure(token, local).x);
    for (var column = local; column < preparation.padded; column += WORKGROUP) {
        var value = 0.0;
        if (column < preparation.width) {
            value = load(token, column) * inverse * norm_weight(column);
        }
        out[token * preparation.padded + column] = value;
    }
}
