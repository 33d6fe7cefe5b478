// The weights of an RMSNorm.

@group(0) @binding(7) var<storage, read> norm: array<f32, WIDTH>;

/// Of four consecutive columns; those beyond the last are never used.
fn norm_quad(column: u32) -> vec4<f32> {
    return vec4(norm[column], norm[column + 1u], norm[column + 2u], norm[column + 3u]);
}
