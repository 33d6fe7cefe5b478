// Query heads without a norm.

fn query_weight(dim: u32) -> f32 {
    return 1.0;
}
