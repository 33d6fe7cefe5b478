// The weights of an RMSNorm.

@group(0) @binding(7) var<storage, read> norm: array<f32>;

fn norm_weight(column: u32) -> f32 {
    return norm[column];
}
