// The input of a ternary linear of one token, made by each workgroup for itself: a dispatch less.

var<workgroup> facts: vec4<u32>;
var<workgroup> input: array<array<vec4<u32>, CHUNKS>, PLANES>;

fn input_facts(token: u32) -> vec4<u32> {
    return facts;
}

fn input_chunk(plane: u32, chunk: u32) -> vec4<u32> {
    return input[plane][chunk];
}

fn put_facts(token: u32, value: vec4<u32>) {
    facts = value;
}

fn put_chunk(token: u32, plane: u32, chunk: u32, value: vec4<u32>) {
    input[plane][chunk] = value;
}

fn prepare_input(local: u32) {
    quantize(0u, local);
    workgroupBarrier();
}
