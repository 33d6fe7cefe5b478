// What the kernels of attention share: where heads lie and how they turn.
//
// HEAD_DIM   width of a head; QUADS are its groups of four
// HEADS, KV_HEADS
// QUERY_NORM, KEY_NORM   RMSNorm of heads before they turn (Qwen3)

const HALF = HEAD_DIM / 2u;
const QUADS = (HEAD_DIM + 3u) / 4u;
const GROUP = HEADS / KV_HEADS;
/// Positions of a block of keys or values, which lie `[positions, KV_HEADS, VECTOR]`: kernels take blocks by pointer, as
/// in ternary_linear.wgsl.
const BLOCK = 64u;
const BLOCK_VECTORS = BLOCK * KV_HEADS * VECTOR;

struct Params {
    /// First elements of the queries, keys and values of the step, `[tokens, heads, HEAD_DIM]` each.
    query: u32,
    key: u32,
    value: u32,
    tokens: u32,
    eps: f32,
    /// Positions that a workgroup attends to.
    stretch: u32,
    splits: u32,
    /// First element of the statistics of splits.
    stats: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> heads: array<f32>;
/// Cosine and sine, `[positions, HALF]`.
@group(0) @binding(2) var<storage, read> rope: array<vec2<f32>>;
/// The position of the first token, then the ids.
@group(0) @binding(3) var<storage, read> input: array<u32>;

/// The pair partner's side of the half-split rotation (https://arxiv.org/abs/2104.09864).
fn turn(own: f32, partner: f32, dim: u32, position: u32) -> f32 {
    let angle = rope[position * HALF + dim % HALF];
    return own * angle.x + select(partner, -partner, dim < HALF) * angle.y;
}

fn partner_of(dim: u32) -> u32 {
    return select(dim - HALF, dim + HALF, dim < HALF);
}

/// What RMSNorm multiplies a head with.
fn inverse_rms(at: u32) -> f32 {
    var squares = 0.0;
    for (var dim = 0u; dim < HEAD_DIM; dim++) {
        squares += heads[at + dim] * heads[at + dim];
    }
    return 1.0 / sqrt(squares / f32(HEAD_DIM) + params.eps);
}
