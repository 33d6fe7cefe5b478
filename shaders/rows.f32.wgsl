// Dense rows of `f32`: a `vec4` of a row is four elements.

const PER_VECTOR = 4u;

fn unpack(packed: vec4<u32>) -> Unpacked {
    return Unpacked(bitcast<vec4<f32>>(packed), vec4(0.0), vec4(0.0), vec4(0.0));
}
