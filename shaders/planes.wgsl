// The input of a ternary linear of one token, as the kernels of rows take it.

/// A chunk of 16 columns of activations, digit by digit.
struct Planes {
    high: vec4<u32>,
    middle: vec4<u32>,
    low: vec4<u32>,
}

fn planes_at(chunk: u32) -> Planes {
    var planes = Planes();
    planes.high = input_chunk(0u, chunk);
    if (PLANES == 3u) {
        planes.middle = input_chunk(1u, chunk);
        planes.low = input_chunk(2u, chunk);
    }
    return planes;
}
