//! The definitions: each verb's arithmetic in the plainest form, straight from the papers. Nothing runs
//! these in production; every faster implementation is property-tested against them.

use crate::quant::Matrix;

/// Codes and scale of the int8 activation quantiser of BitNet b1.58 for one token:
/// `q = round_half_even(x · s)`, `s = 127 / max(max|x|, 1e-5)`.
pub fn quantize_int8(x: &[f32]) -> (Vec<i8>, f32) {
    let max = x.iter().fold(0.0f32, |max, x| max.max(x.abs()));
    let scale = 127.0 / max.max(1e-5);
    (x.iter().map(|x| (x * scale).round_ties_even().clamp(-128.0, 127.0) as i8).collect(), scale)
}

/// `x · Wᵀ` for one token with float activations, accumulated in `f64`.
pub fn linear(weight: &Matrix, x: &[f32]) -> Vec<f32> {
    let mut row_values = vec![0.0; weight.cols()];
    (0..weight.rows())
        .map(|row| {
            weight.decode_row(row, &mut row_values);
            row_values.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum::<f64>() as f32
        })
        .collect()
}

/// `x · Wᵀ` for one token after int8 quantisation of `x`, accumulated in `f64`.
pub fn linear_int8(weight: &Matrix, x: &[f32]) -> Vec<f32> {
    let (codes, scale) = quantize_int8(x);
    let codes: Vec<f32> = codes.into_iter().map(f32::from).collect();
    linear(weight, &codes).into_iter().map(|y| y / scale).collect()
}

/// RMSNorm in `f64`.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
    let mean = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / x.len() as f64;
    let inverse = 1.0 / (mean + f64::from(eps)).sqrt();
    x.iter().zip(weight).map(|(x, w)| (f64::from(*x) * inverse * f64::from(*w)) as f32).collect()
}

/// Causal attention of one query head over keys and values `[positions, head_dim]`, in `f64`.
pub fn attention(query: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>]) -> Vec<f32> {
    let scale = 1.0 / (query.len() as f64).sqrt();
    let scores: Vec<f64> = keys
        .iter()
        .map(|key| query.iter().zip(key).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum::<f64>() * scale)
        .collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    (0..query.len())
        .map(|i| {
            let column = values.iter().zip(&weights).map(|(v, w)| f64::from(v[i]) * w).sum::<f64>();
            (column / sum) as f32
        })
        .collect()
}
