//! RMSNorm (<https://arxiv.org/abs/1910.07467>).

/// `out = x / sqrt(mean(x²) + eps) ⊙ weight`, in `f64` throughout.
pub fn normalised(x: &[f32], weight: &[f32], eps: f32, out: &mut [f64]) {
    let inverse = inverse_rms(x, eps);
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = f64::from(*x) * inverse * f64::from(*weight);
    }
}

/// RMSNorm in place.
pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let inverse = inverse_rms(x, eps) as f32;
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = weight * (*x * inverse);
    }
}

fn inverse_rms(x: &[f32], eps: f32) -> f64 {
    let mut sums = [0.0f64; 8];
    let (chunks, rest) = x.as_chunks::<8>();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    let rest: f64 = rest.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let mean = (sums.iter().sum::<f64>() + rest) / x.len() as f64;
    1.0 / (mean + f64::from(eps)).sqrt()
}
