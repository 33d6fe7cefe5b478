// Rows of half bytes (src/quant/int4.rs): a `vec4` of a row is a group of 32 elements, which share a step. Elements
// are in units of 2⁻²⁸: codes are brought to the top of a word, where the 8 that stands for zero is the sign.

const PER_VECTOR = 32u;
const UNITS = ONE;
const LOW_TO_TOP = vec4(0x10000000u, 0x100000u, 0x1000u, 0x10u);
const HIGH_TO_TOP = vec4(0x1000000u, 0x10000u, 0x100u, 1u);

/// One code of each byte.
fn codes(packed: u32, to_top: vec4<u32>) -> vec4<f32> {
    let tops = vec4(packed ^ 0x88888888u) * to_top;
    return vec4<f32>(bitcast<vec4<i32>>(tops & vec4(0xf0000000u)));
}

fn unpack(packed: vec4<u32>) -> Unpacked {
    return Unpacked(
        codes(packed.x, LOW_TO_TOP), codes(packed.y, LOW_TO_TOP),
        codes(packed.z, LOW_TO_TOP), codes(packed.w, LOW_TO_TOP),
        codes(packed.x, HIGH_TO_TOP), codes(packed.y, HIGH_TO_TOP),
        codes(packed.z, HIGH_TO_TOP), codes(packed.w, HIGH_TO_TOP),
    );
}

/// The step of the group at `place`, counted in `vec4`s of codes: a signed byte, and the units of elements.
fn step_of(place: u32) -> f32 {
    let word = extras[params.steps + place / 16u][place / 4u % 4u];
    return f32(bitcast<i32>(word << (24u - 8u * (place % 4u))) >> 24u) * 0x1p-28f;
}
