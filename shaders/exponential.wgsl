// `eˣ` to the last bit or two of a single: WGSL leaves its own `exp` more room than the quantisers of the next
// layer forgive.

fn exponential(x: f32) -> f32 {
    let bounded = clamp(x, -87.0, 88.0);
    let turns = round(bounded * 1.4426950408889634);
    // ln 2 in two parts, of which the first times a small integer is exact.
    let rest = fma(turns, -1.42860677e-6, fma(turns, -0.693145751953125, bounded));
    var sum = 1.0 / 5040.0;
    sum = fma(sum, rest, 1.0 / 720.0);
    sum = fma(sum, rest, 1.0 / 120.0);
    sum = fma(sum, rest, 1.0 / 24.0);
    sum = fma(sum, rest, 1.0 / 6.0);
    sum = fma(sum, rest, 0.5);
    sum = fma(sum * rest, rest, rest) + 1.0;
    let power = bitcast<f32>((i32(turns) + 127) << 23u);
    return select(sum * power, 0.0, x < -87.0);
}
