// What attention left over SPLITS stretches of the context: weighted sums of values, `[heads, splits, head_dim]`
// a token, then each one's greatest score and sum of weights.

@group(0) @binding(6) var<storage, read> source: array<f32>;

fn load(token: u32, column: u32) -> f32 {
    let heads = WIDTH / HEAD_DIM;
    let head = token * heads + column / HEAD_DIM;
    let stats = preparation.stats + 2u * head * preparation.splits;
    var greatest = source[stats];
    for (var split = 1u; split < preparation.splits; split++) {
        greatest = max(greatest, source[stats + 2u * split]);
    }
    var value = 0.0;
    var sum = 0.0;
    for (var split = 0u; split < preparation.splits; split++) {
        let factor = exponential(source[stats + 2u * split] - greatest);
        sum += factor * source[stats + 2u * split + 1u];
        let at = preparation.source + (head * preparation.splits + split) * HEAD_DIM + column % HEAD_DIM;
        value += factor * source[at];
    }
    return value / sum;
}

/// Four consecutive columns, zeros beyond the last.
fn load_quad(token: u32, column: u32) -> vec4<f32> {
    var quad = vec4(0.0);
    for (var i = 0u; i < min(4u, WIDTH - column); i++) {
        quad[i] = load(token, column + i);
    }
    return quad;
}
