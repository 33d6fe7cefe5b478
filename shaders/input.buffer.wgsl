// The input of a ternary linear, made before (quantize.store.wgsl).

@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;

fn input_at(at: u32) -> vec4<u32> {
    return x[at];
}

/// One word of `input_at(at)`, without the others.
fn input_word(at: u32, word: u32) -> u32 {
    return x[at][word];
}

fn prepare_input(local: u32) {
}
