// Dense rows of halves: a `vec4` of a row is eight elements.

const PER_VECTOR = 8u;
const UNITS = ONE;

fn unpack(packed: vec4<u32>) -> Unpacked {
    return four_quads(
        vec4(unpack2x16float(packed.x), unpack2x16float(packed.y)),
        vec4(unpack2x16float(packed.z), unpack2x16float(packed.w)),
        ZERO, ZERO,
    );
}

fn step_of(place: u32) -> f32 {
    return 1.0;
}
