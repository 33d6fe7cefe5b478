// Activations that lie as they are, `[tokens, WIDTH]`.

@group(0) @binding(6) var<storage, read> source: array<array<f32, WIDTH>>;

/// Four consecutive columns, zeros beyond the last.
fn load_quad(token: u32, column: u32) -> vec4<f32> {
    // By pointer: see ternary_linear.wgsl.
    let row = &source[preparation.source + token];
    let quad = vec4((*row)[column], (*row)[column + 1u], (*row)[column + 2u], (*row)[column + 3u]);
    return select(vec4(0.0), quad, vec4(column) + vec4(0u, 1u, 2u, 3u) < vec4(WIDTH));
}
