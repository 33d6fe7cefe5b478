// Key heads without a norm.

fn key_weight(dim: u32) -> f32 {
    return 1.0;
}
