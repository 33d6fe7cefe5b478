// What attention left over SPLITS stretches of the context: weighted sums of values, `[heads, splits, head_dim]`
// a token, then each one's greatest score and sum of weights.

fn load(token: u32, column: u32) -> f32 {
    let heads = preparation.width / HEAD_DIM;
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
