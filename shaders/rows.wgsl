/// Consecutive elements of a row, as many quads as PER_VECTOR says; each `rows.*.wgsl` is one encoding.
struct Unpacked {
    quad0: vec4<f32>, quad1: vec4<f32>, quad2: vec4<f32>, quad3: vec4<f32>,
}
