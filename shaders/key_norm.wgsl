// The weights of the norm of key heads.

@group(0) @binding(8) var<storage, read> key_norm: array<f32, HEAD_DIM>;

fn key_weight(dim: u32) -> f32 {
    return key_norm[dim];
}
