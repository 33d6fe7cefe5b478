// The weights of the norm of query heads.

@group(0) @binding(7) var<storage, read> query_norm: array<f32, HEAD_DIM>;

fn query_weight(dim: u32) -> f32 {
    return query_norm[dim];
}
