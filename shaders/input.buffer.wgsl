// The input of a ternary linear of one token, made before (quantize.store.wgsl).

@group(0) @binding(2) var<storage, read> input: array<array<vec4<u32>, CHUNKS>, 1u + PLANES>;

fn input_facts(token: u32) -> vec4<u32> {
    return input[0][0];
}

fn input_chunk(plane: u32, chunk: u32) -> vec4<u32> {
    return input[1u + plane][chunk];
}

fn prepare_input(local: u32) {
}
