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

var<workgroup> squares: array<vec4<f32>, WORKGROUP>;
var<workgroup> maxima: array<f32, WORKGROUP>;
var<workgroup> roots: array<vec2<f32>, ROOT>;
var<workgroup> whole: vec2<f32>;

/// The sum of a workgroup's `own` squares and the greatest of its magnitudes, in three steps. The last one is a single
/// invocation's, since a processor that plays the GPU would do for each four what it can do once. Sums go column by
/// column, whoever prepares: prompts and single tokens round alike.
fn sum_and_max(local: u32, own: vec4<f32>, greatest: f32) -> vec2<f32> {
    squares[local] = own;
    maxima[local] = greatest;
    workgroupBarrier();
    if (local < ROOT) {
        var sum = vec2(0.0);
        for (var i = 0u; i < PER_ROOT; i++) {
            let part = squares[local * PER_ROOT + i];
            sum.x = (((sum.x + part.x) + part.y) + part.z) + part.w;
            sum.y = max(sum.y, maxima[local * PER_ROOT + i]);
        }
        roots[local] = sum;
    }
    workgroupBarrier();
    if (local == 0u) {
        var all = roots[0];
        for (var i = 1u; i < ROOT; i++) {
            all = vec2(all.x + roots[i].x, max(all.y, roots[i].y));
        }
        whole = all;
    }
    workgroupBarrier();
    return whole;
}

/// `Σ x²` and `max |x · weight|` of a token.
fn measure(token: u32, local: u32) -> vec2<f32> {
    var own = vec4(0.0);
    var greatest = 0.0;
    for (var column = 4u * local; column < WIDTH; column += 4u * WORKGROUP) {
        let values = load_quad(token, column);
        let sizes = abs(values * norm_quad(column));
        own += values * values;
        greatest = max(greatest, max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
    }
    return sum_and_max(local, own, greatest);
}

/// What RMSNorm multiplies with, `1` without one.
fn inverse_rms(squares: f32) -> f32 {
    if (!NORM) {
        return 1.0;
    }
    return 1.0 / sqrt(squares / f32(WIDTH) + preparation.eps);
}
