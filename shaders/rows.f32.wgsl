// Dense rows of `f32`: a `vec4` of a row is four elements.

const PER_VECTOR = 4u;
const UNITS = ONE;

fn unpack(packed: vec4<u32>) -> Unpacked {
    return four_quads(bitcast<vec4<f32>>(packed), ZERO, ZERO, ZERO);
}

fn step_of(place: u32) -> f32 {
    return 1.0;
}
