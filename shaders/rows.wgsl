/// Consecutive elements of a row, as many quads as PER_VECTOR says, in units of UNITS by columns; each `rows.*.wgsl`
/// is one encoding.
struct Unpacked {
    quad0: vec4<f32>, quad1: vec4<f32>, quad2: vec4<f32>, quad3: vec4<f32>,
    quad4: vec4<f32>, quad5: vec4<f32>, quad6: vec4<f32>, quad7: vec4<f32>,
}

const ZERO = vec4<f32>(0.0);
/// UNITS where elements are what they are.
const ONE = vec4<f32>(1.0);

fn four_quads(quad0: vec4<f32>, quad1: vec4<f32>, quad2: vec4<f32>, quad3: vec4<f32>) -> Unpacked {
    return Unpacked(quad0, quad1, quad2, quad3, ZERO, ZERO, ZERO, ZERO);
}
