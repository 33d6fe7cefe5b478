// Rows of signed bytes: a `vec4` of a row is sixteen elements.

const PER_VECTOR = 16u;

fn signed_bytes(packed: u32) -> vec4<f32> {
    let shifted = vec4(packed << 24u, packed << 16u, packed << 8u, packed);
    return vec4<f32>(bitcast<vec4<i32>>(shifted) >> vec4(24u));
}

fn unpack(packed: vec4<u32>) -> Unpacked {
    return four_quads(
        signed_bytes(packed.x), signed_bytes(packed.y), signed_bytes(packed.z), signed_bytes(packed.w),
    );
}

fn step_of(place: u32) -> f32 {
    return 1.0;
}
