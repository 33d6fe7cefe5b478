// The input of a ternary linear of one token, made by each workgroup for itself: a dispatch less.
//
// INPUTS  `vec4`s of the input

var<workgroup> inputs: array<vec4<u32>, INPUTS>;

fn input_at(at: u32) -> vec4<u32> {
    return inputs[at];
}

fn put_input(at: u32, value: vec4<u32>) {
    inputs[at] = value;
}

fn prepare_input(local: u32) {
    quantize(0u, local);
    workgroupBarrier();
}
