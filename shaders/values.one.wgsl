// The activations of one token.

@group(0) @binding(2) var<storage, read> x: array<vec4<f32>, X_QUADS>;

fn x_quad(token: u32, quad: u32) -> vec4<f32> {
    return x[quad];
}
