// Rows of half bytes (src/quant/int4.rs): a `vec4` of a row is a group of 32 elements, which share a step.

const PER_VECTOR = 32u;

/// One code of each byte, less the 8 that stands for zero.
fn codes(packed: u32, shift: u32) -> vec4<f32> {
    let bytes = vec4(packed, packed >> 8u, packed >> 16u, packed >> 24u);
    return vec4<f32>((bytes >> vec4(shift)) & vec4(15u)) - 8.0;
}

fn unpack(packed: vec4<u32>) -> Unpacked {
    return Unpacked(
        codes(packed.x, 0u), codes(packed.y, 0u), codes(packed.z, 0u), codes(packed.w, 0u),
        codes(packed.x, 4u), codes(packed.y, 4u), codes(packed.z, 4u), codes(packed.w, 4u),
    );
}

/// The step of the group at `place`, counted in `vec4`s of codes: a signed byte.
fn step_of(place: u32) -> f32 {
    let word = weights[params.steps + place / 16u][place / 4u % 4u];
    return f32(bitcast<i32>(word << (24u - 8u * (place % 4u))) >> 24u);
}
