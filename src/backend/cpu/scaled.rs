//! Sums are scaled in double precision, where every step but the last is exact or nearly so, and rounded once. The same for one token as for many, so that a prompt in pieces gives what it gives whole.

#[cfg(target_feature = "simd128")]
use super::lanes::{demote, promote};
#[cfg(target_feature = "simd128")]
use std::arch::wasm32::*;

/// `(sums − total) · scales · unit`
#[cfg(not(target_feature = "simd128"))]
pub fn scaled<const ROWS: usize>(
    sums: &[i32; ROWS],
    total: i32,
    scales: &[f32; ROWS],
    unit: f64,
) -> [f32; ROWS] {
    std::array::from_fn(|row| (f64::from(sums[row] - total) * f64::from(scales[row]) * unit) as f32)
}

/// `(sums − total) · scales · unit`; rows come in fours.
#[cfg(target_feature = "simd128")]
#[inline(always)]
pub fn scaled<const ROWS: usize>(
    sums: &[i32; ROWS],
    total: i32,
    scales: &[f32; ROWS],
    unit: f64,
) -> [f32; ROWS] {
    const { assert!(ROWS.is_multiple_of(4)) };
    let (total, unit) = (i32x4_splat(total), f64x2_splat(unit));
    let mut values = [0.0; ROWS];
    for quad in (0..ROWS).step_by(4) {
        // SAFETY: four rows begin at `quad`.
        unsafe {
            let sums = i32x4_sub(v128_load(sums.as_ptr().add(quad).cast()), total);
            let upper = i32x4_shuffle::<2, 3, 2, 3>(sums, sums);
            let sums = [f64x2_convert_low_i32x4(sums), f64x2_convert_low_i32x4(upper)];
            let scales = promote(v128_load(scales.as_ptr().add(quad).cast()));
            let product = |half: usize| f64x2_mul(f64x2_mul(sums[half], scales[half]), unit);
            v128_store(values.as_mut_ptr().add(quad).cast(), demote([product(0), product(1)]));
        }
    }
    values
}

/// `values · factor`
pub fn multiply(values: &[f32], factor: f64, out: &mut [f32]) {
    let (quads, rest) = values.as_chunks();
    let (out_quads, out_rest) = out.as_chunks_mut();
    out_quads.iter_mut().zip(quads).for_each(|(out, quad)| *out = multiply_four(quad, factor));
    out_rest.iter_mut().zip(rest).for_each(|(out, value)| *out = (f64::from(*value) * factor) as f32);
}

#[cfg(not(target_feature = "simd128"))]
fn multiply_four(values: &[f32; 4], factor: f64) -> [f32; 4] {
    values.map(|value| (f64::from(value) * factor) as f32)
}

#[cfg(target_feature = "simd128")]
#[inline(always)]
fn multiply_four(values: &[f32; 4], factor: f64) -> [f32; 4] {
    let mut out = [0.0; 4];
    // SAFETY: four floats are a vector.
    unsafe {
        let products =
            promote(v128_load(values.as_ptr().cast())).map(|half| f64x2_mul(half, f64x2_splat(factor)));
        v128_store(out.as_mut_ptr().cast(), demote(products));
    }
    out
}
