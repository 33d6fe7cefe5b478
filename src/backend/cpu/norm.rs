//! RMSNorm (<https://arxiv.org/abs/1910.07467>).

use super::float::dot;

/// `out = x / sqrt(mean(x²) + eps) ⊙ weight`
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let inverse = inverse_rms(x, eps);
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = weight * (x * inverse);
    }
}

/// [`rms_norm`] in place.
pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let inverse = inverse_rms(x, eps);
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = weight * (*x * inverse);
    }
}

fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt()
}
