//! RMSNorm (<https://arxiv.org/abs/1910.07467>).

use super::float;
use crate::quant::ternary::CHUNK_COLS;

#[cfg(not(target_feature = "simd128"))]
use portable::{measure, round};
#[cfg(target_feature = "simd128")]
use simd::{measure, round};

/// Columns that are measured at once.
const LANES: usize = 8;

/// A row and what its norm, `x ⊙ weight · inverse`, needs. In `f64`, where the products are exact.
pub struct Normalised<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    inverse: f64,
    largest: f64,
}

impl<'a> Normalised<'a> {
    pub fn new(x: &'a [f32], weight: &'a [f32], eps: f32) -> Self {
        let (squares, largest) = measure(x, weight);
        let inverse = inverse_rms(squares, x.len(), eps);
        Self { x, weight, inverse, largest: largest * inverse }
    }

    /// The norm in single precision.
    pub fn write(&self, out: &mut [f32]) {
        for (out, (x, weight)) in out.iter_mut().zip(self.x.iter().zip(self.weight)) {
            *out = (f64::from(*x) * f64::from(*weight) * self.inverse) as f32;
        }
    }

    /// Calls `body` with the norm of sixteen columns, times `scale` and rounded, in order; after the last column come
    /// zeros.
    #[inline(always)]
    pub fn for_integers(&self, scale: f64, mut body: impl FnMut([i32; CHUNK_COLS])) {
        let factor = self.inverse * scale;
        float::for_chunks([self.x, self.weight], |[x, weight]| body(round(x, weight, factor)));
    }

    /// The norm's largest magnitude.
    pub fn largest(&self) -> f64 {
        self.largest
    }
}

/// RMSNorm in place.
pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let (squares, _) = measure(x, weight);
    let inverse = inverse_rms(squares, x.len(), eps) as f32;
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = weight * (*x * inverse);
    }
}

fn inverse_rms(squares: f64, len: usize, eps: f32) -> f64 {
    1.0 / (squares / len as f64 + f64::from(eps)).sqrt()
}

#[cfg(not(target_feature = "simd128"))]
mod portable {
    use super::{CHUNK_COLS, LANES, float};

    /// `Σ x²`, and the largest magnitude of `x ⊙ weight`.
    pub fn measure(x: &[f32], weight: &[f32]) -> (f64, f64) {
        let (mut squares, mut largest) = ([0.0; LANES], 0.0f64);
        float::for_chunks([x, weight], |[x, weight]: [&[f32; LANES]; 2]| {
            for ((sum, x), weight) in squares.iter_mut().zip(x).zip(weight) {
                let (x, weight) = (f64::from(*x), f64::from(*weight));
                *sum += x * x;
                largest = largest.max((x * weight).abs());
            }
        });
        (squares.iter().sum(), largest)
    }

    /// `x ⊙ weight · factor`, rounded to the nearest integers, the even one of two.
    pub fn round(x: &[f32; CHUNK_COLS], weight: &[f32; CHUNK_COLS], factor: f64) -> [i32; CHUNK_COLS] {
        let product = |col: usize| f64::from(x[col]) * f64::from(weight[col]) * factor;
        std::array::from_fn(|col| product(col).round_ties_even() as i32)
    }
}

#[cfg(target_feature = "simd128")]
mod simd {
    use super::{CHUNK_COLS, LANES, float};
    use std::arch::wasm32::*;

    /// Adding 1.5 · 2⁵² to a double leaves its integer part, rounded, in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;

    /// Eight values of a row as doubles.
    #[inline(always)]
    fn doubles(values: &[f32; LANES]) -> [v128; 4] {
        let [a, b, c, d] = values.as_chunks::<2>().0 else { unreachable!("eight are four pairs") };
        // SAFETY: two singles are eight bytes.
        [a, b, c, d].map(|pair| f64x2_promote_low_f32x4(unsafe { v128_load64_zero(pair.as_ptr().cast()) }))
    }

    /// `Σ x²`, and the largest magnitude of `x ⊙ weight`.
    pub fn measure(x: &[f32], weight: &[f32]) -> (f64, f64) {
        let (mut squares, mut largest) = ([f64x2_splat(0.0); 4], [f64x2_splat(0.0); 4]);
        float::for_chunks([x, weight], |[x, weight]: [&[f32; LANES]; 2]| {
            for (lane, (x, weight)) in doubles(x).into_iter().zip(doubles(weight)).enumerate() {
                squares[lane] = f64x2_add(squares[lane], f64x2_mul(x, x));
                largest[lane] = f64x2_pmax(largest[lane], f64x2_abs(f64x2_mul(x, weight)));
            }
        });
        let pairs = |[a, b, c, d]: [v128; 4], join: fn(v128, v128) -> v128| {
            let all = join(join(a, b), join(c, d));
            join(all, i64x2_shuffle::<1, 0>(all, all))
        };
        let [squares, largest] = [pairs(squares, f64x2_add), pairs(largest, f64x2_pmax)];
        (f64x2_extract_lane::<0>(squares), f64x2_extract_lane::<0>(largest))
    }

    /// `x ⊙ weight · factor`, rounded to the nearest integers, the even one of two.
    #[inline(always)]
    pub fn round(x: &[f32; CHUNK_COLS], weight: &[f32; CHUNK_COLS], factor: f64) -> [i32; CHUNK_COLS] {
        let (factor, whole) = (f64x2_splat(factor), f64x2_splat(ROUND));
        let mut integers = [0; CHUNK_COLS];
        let halves = x.as_chunks::<LANES>().0.iter().zip(weight.as_chunks::<LANES>().0);
        for ((x, weight), out) in halves.zip(integers.as_chunks_mut::<LANES>().0) {
            let (x, weight) = (doubles(x), doubles(weight));
            let rounded = |i: usize| f64x2_add(f64x2_mul(f64x2_mul(x[i], weight[i]), factor), whole);
            let quad = |i: usize| i32x4_shuffle::<0, 2, 4, 6>(rounded(i), rounded(i + 1));
            let out = out.as_mut_ptr().cast::<v128>();
            // SAFETY: eight integers are two vectors.
            unsafe {
                v128_store(out, quad(0));
                v128_store(out.add(1), quad(2));
            }
        }
        integers
    }
}
