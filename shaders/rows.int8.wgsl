// Rows of signed bytes: a `vec4` of a row is sixteen elements. Bytes become singles where they are in their word:
// software adapters take vectors apart to shift them, and multiply integers slowly.

const PER_VECTOR = 16u;
const UNITS = vec4(1.0, 0x1p-8f, 0x1p-16f, 0x1p-24f);
const BYTES = vec4(0xffu, 0xff00u, 0xff0000u, 0xff000000u);
/// What all but the topmost byte, which meets the sign of a word, are made positive by.
const SIGNS = 0x808080u;
const ADDED = vec4(128.0, 32768.0, 8388608.0, 0.0);

fn signed_bytes(packed: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4(packed ^ SIGNS) & BYTES)) - ADDED;
}

fn unpack(packed: vec4<u32>) -> Unpacked {
    return four_quads(
        signed_bytes(packed.x), signed_bytes(packed.y), signed_bytes(packed.z), signed_bytes(packed.w),
    );
}

fn step_of(place: u32) -> f32 {
    return 1.0;
}
