// Dense rows of bfloat16: a `vec4` of a row is eight elements.

const PER_VECTOR = 8u;
const UNITS = ONE;

fn singles(low_high: vec2<u32>) -> vec4<f32> {
    let high = low_high & vec2(0xffff0000u);
    let low = low_high * 65536u;
    return bitcast<vec4<f32>>(vec4(low.x, high.x, low.y, high.y));
}

fn unpack(packed: vec4<u32>) -> Unpacked {
    return four_quads(singles(packed.xy), singles(packed.zw), ZERO, ZERO);
}

fn step_of(place: u32) -> f32 {
    return 1.0;
}
