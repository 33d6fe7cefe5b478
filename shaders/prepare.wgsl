// Where the inputs of linears begin: a workgroup reads a token and makes what is needed of all of it.
//
// WORKGROUP  its invocations, a multiple of ROOT
// WIDTH      columns of the source
// RMSNorm is https://arxiv.org/abs/1910.07467.

struct Preparation {
    /// The source's first row; of attention in parts, the first element, that of its statistics, and how many splits
    /// there are (source.partials.wgsl).
    source: u32,
    stats: u32,
    splits: u32,
    /// Columns of the result, padding included.
    padded: u32,
    tokens: u32,
    eps: f32,
    unused0: u32,
    unused1: u32,
}

@group(0) @binding(5) var<uniform> preparation: Preparation;
const ROOT = 16u;
const PER_ROOT = WORKGROUP / ROOT;

var<workgroup> parts: array<vec2<f32>, WORKGROUP>;
var<workgroup> part_sums: array<vec2<f32>, ROOT>;
var<workgroup> whole_sum: vec2<f32>;

/// The sum of all `x` and the greatest `y` of a workgroup, in three steps. The last one is a single invocation's, since
/// a processor that plays the GPU would do for each four what it can do once.
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
    if (local == 0u) {
        var all = part_sums[0];
        for (var i = 1u; i < ROOT; i++) {
            all = vec2(all.x + part_sums[i].x, max(all.y, part_sums[i].y));
        }
        whole_sum = all;
    }
    workgroupBarrier();
    return whole_sum;
}

/// `Σ x²` and `max |x · weight|` of a token.
fn measure(token: u32, local: u32) -> vec2<f32> {
    var sums = vec2(0.0);
    for (var column = 4u * local; column < WIDTH; column += 4u * WORKGROUP) {
        let values = load_quad(token, column);
        let sizes = abs(values * norm_quad(column));
        let greatest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
        sums = vec2(sums.x + dot(values, values), max(sums.y, greatest));
    }
    return sum_and_max(local, sums);
}

/// What RMSNorm multiplies with, `1` without one.
fn inverse_rms(squares: f32) -> f32 {
    if (!NORM) {
        return 1.0;
    }
    return 1.0 / sqrt(squares / f32(WIDTH) + preparation.eps);
}
