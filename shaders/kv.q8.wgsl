// Keys and values as signed bytes, four to a word, and what one unit is worth behind each head's vector: the
// quantisation of the CPU's cache (src/backend/cpu/cache.rs).

alias Stored = u32;

const HAS_UNITS = true;
/// Words of a vector.
const VECTOR = QUADS + 1u;
const GREATEST = 127.0;
const SMALLEST_NORMAL = 1.17549435e-38;

/// What one unit is worth in a vector whose largest magnitude is `largest`.
fn unit_for(largest: f32) -> f32 {
    return max(largest, SMALLEST_NORMAL * GREATEST) / GREATEST;
}

fn keep(quad: vec4<f32>, unit: f32) -> Stored {
    let codes = bitcast<vec4<u32>>(vec4<i32>(round(quad / unit))) & vec4(0xffu);
    return dot(codes, vec4(1u, 0x100u, 0x10000u, 0x1000000u));
}

fn keep_unit(unit: f32) -> Stored {
    return bitcast<u32>(unit);
}

/// Elements in units of 2⁻²⁴ of the vector's: bytes at the top of words.
fn kept(stored: Stored) -> vec4<f32> {
    let tops = vec4(stored) * vec4(0x1000000u, 0x10000u, 0x100u, 1u);
    return vec4<f32>(bitcast<vec4<i32>>(tops & vec4(0xff000000u)));
}

fn kept_unit(stored: Stored) -> f32 {
    return bitcast<f32>(stored) * 0x1p-24f;
}
