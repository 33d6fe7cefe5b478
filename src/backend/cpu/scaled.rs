//! Integer sums become floats: in double precision, where every step but the last is exact or nearly so, and rounded
//! once. The same for one token as for many, so that a prompt in pieces gives what it gives whole.

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
    use super::lanes::{demote, promote};
    use std::arch::wasm32::*;

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
