// Where the inputs of linears begin: a workgroup reads a token and makes what is needed of all of it.
//
// WORKGROUP  its invocations, a multiple of ROOT
// RMSNorm is https://arxiv.org/abs/1910.07467.

struct Preparation {
    width: u32,
    /// First element of the source; of its statistics, and how many splits there are (source.partials.wgsl).
    source: u32,
    stats: u32,
    splits: u32,
    /// Columns of the result, padding included.
    padded: u32,
    tokens: u32,
    eps: f32,
    unused: u32,
}

@group(0) @binding(5) var<uniform> preparation: Preparation;
@group(0) @binding(6) var<storage, read> source: array<f32>;

const ROOT = 16u;
const PER_ROOT = WORKGROUP / ROOT;

var<workgroup> parts: array<vec2<f32>, WORKGROUP>;
var<workgroup> part_sums: array<vec2<f32>, ROOT>;

/// The sum of all `x` and the greatest `y` of a workgroup, in two steps: two barriers, where a tree has eight.
fn sum_and_max(local: u32, value: vec2<f32>) -> vec2<f32> {
    parts[local] = value;
    workgroupBarrier();
    if (local < ROOT) {
        var sum = parts[local * PER_ROOT];
        for (var i = 1u; i < PER_ROOT; i++) {
            let part = parts[local * PER_ROOT + i];
            sum = vec2(sum.x + part.x, max(sum.y, part.y));
        }
        part_sums[local] = sum;
    }
    workgroupBarrier();
    var all = part_sums[0];
    for (var i = 1u; i < ROOT; i++) {
        all = vec2(all.x + part_sums[i].x, max(all.y, part_sums[i].y));
    }
    return all;
}

/// `Σ x²` and `max |x · weight|` of a token.
fn measure(token: u32, local: u32) -> vec2<f32> {
    var sums = vec2(0.0);
    for (var column = local; column < preparation.width; column += WORKGROUP) {
        let value = load(token, column);
        sums = vec2(sums.x + value * value, max(sums.y, abs(value * norm_weight(column))));
    }
    return sum_and_max(local, sums);
}

/// What RMSNorm multiplies with, `1` without one.
fn inverse_rms(squares: f32) -> f32 {
    if (!NORM) {
        return 1.0;
    }
    return 1.0 / sqrt(squares / f32(preparation.width) + preparation.eps);
}
