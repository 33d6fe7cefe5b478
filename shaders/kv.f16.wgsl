// Keys and values as halves, two to a word: needs no `shader-f16`.

alias Stored = vec2<u32>;

const HAS_UNITS = false;
const VECTOR = QUADS;

fn unit_for(largest: f32) -> f32 {
    return 1.0;
}

fn keep(quad: vec4<f32>, unit: f32) -> Stored {
    return vec2(pack2x16float(quad.xy), pack2x16float(quad.zw));
}

fn keep_unit(unit: f32) -> Stored {
    return vec2(0u);
}

fn kept(stored: Stored) -> vec4<f32> {
    return vec4(unpack2x16float(stored.x), unpack2x16float(stored.y));
}

fn kept_unit(stored: Stored) -> f32 {
    return 1.0;
}
