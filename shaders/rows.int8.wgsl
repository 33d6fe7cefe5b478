// Rows of signed bytes: a `vec4` of a row is sixteen elements, in units of 2⁻²⁴: bytes are brought to the top of a
// word without shifts, for which software adapters take vectors apart.

const PER_VECTOR = 16u;

fn signed_bytes(packed: u32) -> vec4<f32> {
    let tops = vec4(packed) * vec4(0x1000000u, 0x10000u, 0x100u, 1u);
    return vec4<f32>(bitcast<vec4<i32>>(tops & vec4(0xff000000u)));
}

fn unpack(packed: vec4<u32>) -> Unpacked {
    return four_quads(
        signed_bytes(packed.x), signed_bytes(packed.y), signed_bytes(packed.z), signed_bytes(packed.w),
    );
}

fn step_of(place: u32) -> f32 {
    return 0x1p-24f;
}
