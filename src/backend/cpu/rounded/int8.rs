//! Exact products of four 8-bit rows with a vector of 14-bit integers, chosen at compile time like
//! [`super::super::dot`].

use super::{QUARTERS, RoundedRows};
use crate::quant::Int8Matrix;

#[cfg(not(target_feature = "simd128"))]
use portable::{Vector, dot_rows};
#[cfg(all(target_feature = "simd128", target_feature = "relaxed-simd"))]
use relaxed::{Vector, dot_rows};
#[cfg(all(target_feature = "simd128", not(target_feature = "relaxed-simd")))]
use simd128::{Vector, dot_rows};

/// Columns of one step.
const STEP: usize = 16;

impl RoundedRows for Int8Matrix {
    type Vector = Vector;
    const MAX: f32 = 8191.0;
    type Products = [f64; 1];
    const ROWS: usize = 1;

    fn cols(&self) -> (usize, usize) {
        (Int8Matrix::cols(self), self.padded_cols())
    }

    fn vector(integers: &[i16]) -> Vector {
        Vector::new(integers)
    }

    fn products(&self, rows: [usize; QUARTERS], x: &Vector) -> [[f64; 1]; QUARTERS] {
        let sums = dot_rows(rows.map(|row| self.row(row)), rows.map(|row| self.sum(row)), x);
        std::array::from_fn(|index| [sums[index] as f64 * f64::from(self.scale(rows[index]))])
    }
}

#[cfg(not(target_feature = "simd128"))]
mod portable {
    use super::{QUARTERS, STEP};

    pub struct Vector(Vec<i16>);

    impl Vector {
        pub fn new(integers: &[i16]) -> Self {
            Self(integers.to_vec())
        }
    }

    /// `Σ weight · x` of four rows.
    pub fn dot_rows(rows: [&[i8]; QUARTERS], _sums: [i32; QUARTERS], x: &Vector) -> [i64; QUARTERS] {
        rows.map(|row| {
            let steps = row.as_chunks::<STEP>().0.iter().zip(x.0.as_chunks::<STEP>().0);
            steps
                .map(|(row, x)| {
                    let products = row.iter().zip(x).map(|(weight, x)| i32::from(*weight) * i32::from(*x));
                    i64::from(products.sum::<i32>())
                })
                .sum()
        })
    }
}

#[cfg(all(target_feature = "simd128", not(target_feature = "relaxed-simd")))]
mod simd128 {
    use super::{QUARTERS, STEP};
    use crate::backend::cpu::lanes::lane_sums;
    use std::arch::wasm32::*;

    /// A lane sums a quarter of the columns, `127 · 8191` each: so many stay below 2³¹, in all lanes.
    const MAX_COLS: usize = 2048;

    pub struct Vector(Vec<i16>);

    impl Vector {
        pub fn new(integers: &[i16]) -> Self {
            Self(integers.to_vec())
        }
    }

    /// `Σ weight · x` of four rows.
    pub fn dot_rows(rows: [&[i8]; QUARTERS], _sums: [i32; QUARTERS], x: &Vector) -> [i64; QUARTERS] {
        assert!(rows.iter().all(|row| row.len() == x.0.len()));
        let mut total = [0i64; QUARTERS];
        for (first, x) in (0..).step_by(MAX_COLS).zip(x.0.chunks(MAX_COLS)) {
            let sums = dot_block(rows.map(|row| &row[first..first + x.len()]), x);
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += i64::from(sum));
        }
        total
    }

    fn dot_block(rows: [&[i8]; QUARTERS], x: &[i16]) -> [i32; QUARTERS] {
        let mut sums = [i32x4_splat(0); QUARTERS];
        for (step, x) in x.as_chunks::<STEP>().0.iter().enumerate() {
            // SAFETY: a step is 16 activations, and every row has as many weights as `x` (sliced so).
            unsafe {
                let x = x.as_ptr().cast::<v128>();
                let (low, high) = (v128_load(x), v128_load(x.add(1)));
                for (sum, row) in sums.iter_mut().zip(rows) {
                    let weights = v128_load(row.as_ptr().add(step * STEP).cast());
                    let low = i32x4_dot_i16x8(i16x8_extend_low_i8x16(weights), low);
                    let high = i32x4_dot_i16x8(i16x8_extend_high_i8x16(weights), high);
                    *sum = i32x4_add(*sum, i32x4_add(low, high));
                }
            }
        }
        lane_sums(sums)
    }
}

#[cfg(all(target_feature = "simd128", target_feature = "relaxed-simd"))]
mod relaxed {
    use super::{QUARTERS, STEP};
    use crate::backend::cpu::lanes::lane_sums;
    use std::arch::wasm32::*;

    /// What is added to an activation to make it positive: both of its halves are seven bits then, as the
    /// instruction's second operand must be to mean the same on every engine.
    const OFFSET: i16 = 1 << 13;

    /// The upper and the lower seven bits of sixteen activations.
    #[derive(Clone, Copy)]
    #[repr(C, align(16))]
    struct Step([[u8; STEP]; 2]);

    pub struct Vector(Vec<Step>);

    impl Vector {
        pub fn new(integers: &[i16]) -> Self {
            let steps = integers.as_chunks::<STEP>().0.iter();
            Self(
                steps
                    .map(|x| {
                        Step([x.map(|x| ((x + OFFSET) >> 7) as u8), x.map(|x| (x + OFFSET) as u8 & 127)])
                    })
                    .collect(),
            )
        }
    }

    /// `Σ weight · x` of four rows; `sums` are the sums of their weights.
    pub fn dot_rows(rows: [&[i8]; QUARTERS], sums: [i32; QUARTERS], x: &Vector) -> [i64; QUARTERS] {
        assert!(rows.iter().all(|row| row.len() == x.0.len() * STEP));
        let mut upper = [i32x4_splat(0); QUARTERS];
        let mut lower = upper;
        for (step, x) in x.0.iter().enumerate() {
            // SAFETY: a step is two vectors, and every row has 16 weights for each (asserted).
            unsafe {
                let x = std::ptr::from_ref(x).cast::<v128>();
                let (high, low) = (v128_load(x), v128_load(x.add(1)));
                for row in 0..QUARTERS {
                    let weights = v128_load(rows[row].as_ptr().add(step * STEP).cast());
                    upper[row] = i32x4_relaxed_dot_i8x16_i7x16_add(weights, high, upper[row]);
                    lower[row] = i32x4_relaxed_dot_i8x16_i7x16_add(weights, low, lower[row]);
                }
            }
        }
        let (upper, lower) = (lane_sums(upper), lane_sums(lower));
        std::array::from_fn(|row| {
            (i64::from(upper[row]) << 7) + i64::from(lower[row]) - i64::from(sums[row]) * i64::from(OFFSET)
        })
    }
}
