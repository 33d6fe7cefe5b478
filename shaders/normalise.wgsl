// The float inputs of dense linears: RMSNorm, padded with zeros to a multiple of four.

@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let token = workgroup.x;
    let inverse = inverse_rms(measure(token, local).x);
    for (var column = 4u * local; column < preparation.padded; column += 4u * WORKGROUP) {
        var values = vec4(0.0);
        if (column < WIDTH) {
            values = load_quad(token, column) * inverse * norm_quad(column);
        }
        out[(token * preparation.padded + column) / 4u] = values;
    }
}
