// Keys and values as halves, two to a word: needs no `shader-f16`.

alias Stored = vec2<u32>;

fn keep(quad: vec4<f32>) -> Stored {
    return vec2(pack2x16float(quad.xy), pack2x16float(quad.zw));
}

fn kept(stored: Stored) -> vec4<f32> {
    return vec4(unpack2x16float(stored.x), unpack2x16float(stored.y));
}
