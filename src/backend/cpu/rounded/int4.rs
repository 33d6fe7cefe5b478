//! Products of four 4-bit rows with a vector of 16-bit integers, chosen at compile time like
//! [`super::super::dot`]. The sum of a group of columns is exact; groups meet their scales in single
//! precision.

use super::{ROWS, RoundedRows};
use crate::quant::Int4Matrix;
use crate::quant::int4::GROUP;

#[cfg(not(target_feature = "simd128"))]
use portable::{Vector, dot_rows};
#[cfg(target_feature = "simd128")]
use simd::{Vector, dot_rows};

/// Bytes of a group's codes.
const GROUP_BYTES: usize = GROUP / 2;
/// Codes are this much more than what they stand for.
const OFFSET: i32 = 8;

impl RoundedRows for Int4Matrix {
    type Vector = Vector;
    /// Both signed digits of an activation are bytes.
    const MAX: f32 = (127 * 256 + 127) as f32;

    fn cols(&self) -> (usize, usize) {
        (Int4Matrix::cols(self), self.padded_cols())
    }

    fn vector(integers: &[i16]) -> Vector {
        Vector::new(integers)
    }

    fn products(&self, rows: [usize; ROWS], x: &Vector) -> [f64; ROWS] {
        let sums = dot_rows(rows.map(|row| self.row(row)), rows.map(|row| self.steps(row)), x);
        std::array::from_fn(|index| f64::from(sums[index]) * f64::from(self.scale(rows[index])))
    }
}

#[cfg(not(target_feature = "simd128"))]
mod portable {
    use super::{GROUP, GROUP_BYTES, OFFSET, ROWS};

    pub struct Vector(Vec<i16>);

    impl Vector {
        pub fn new(integers: &[i16]) -> Self {
            Self(integers.to_vec())
        }
    }

    /// `Σ (code − 8) · step · x` of four rows.
    pub fn dot_rows(rows: [&[u8]; ROWS], steps: [&[i8]; ROWS], x: &Vector) -> [f32; ROWS] {
        std::array::from_fn(|row| {
            let groups = rows[row].as_chunks::<GROUP_BYTES>().0.iter().zip(steps[row]);
            let groups = groups.zip(x.0.as_chunks::<GROUP>().0);
            groups.map(|((codes, step), x)| dot_group(codes, x) as f32 * f32::from(*step)).sum()
        })
    }

    fn dot_group(codes: &[u8; GROUP_BYTES], x: &[i16; GROUP]) -> i32 {
        let (first, second) = x.split_at(GROUP_BYTES);
        let pairs = codes.iter().zip(first).zip(second);
        pairs
            .map(|((codes, first), second)| {
                (i32::from(codes & 15) - OFFSET) * i32::from(*first)
                    + (i32::from(codes >> 4) - OFFSET) * i32::from(*second)
            })
            .sum()
    }
}

#[cfg(target_feature = "simd128")]
mod simd {
    use super::{GROUP, GROUP_BYTES, OFFSET, ROWS};
    use crate::quant::int4::BATCH;
    use std::arch::wasm32::*;

    /// Vector registers that the activations of a group take: two signed bytes each in the relaxed build,
    /// a 16-bit integer each in the other.
    const PARTS: usize = 4;

    /// The activations of a group.
    #[derive(Clone, Copy)]
    struct Group {
        parts: [v128; PARTS],
        /// What codes add to each lane's sum by being 8 more than what they stand for, negated.
        correction: v128,
    }

    pub struct Vector(Vec<Group>);

    impl Vector {
        pub fn new(integers: &[i16]) -> Self {
            Self(integers.as_chunks::<GROUP>().0.iter().map(Group::new).collect())
        }
    }

    /// `Σ (code − 8) · step · x` of four rows.
    pub fn dot_rows(rows: [&[u8]; ROWS], steps: [&[i8]; ROWS], x: &Vector) -> [f32; ROWS] {
        let groups = x.0.len();
        assert!(groups.is_multiple_of(BATCH));
        assert!(rows.iter().all(|row| row.len() == groups * GROUP_BYTES));
        assert!(steps.iter().all(|steps| steps.len() == groups));
        let mut sums = [f32x4_splat(0.0); ROWS];
        for (batch, x) in x.0.as_chunks::<BATCH>().0.iter().enumerate() {
            // SAFETY: every row has 16 bytes and a step for each group of `x` (asserted).
            unsafe {
                let scales = steps.map(|steps| load_steps(steps.as_ptr().add(batch * BATCH)));
                for row in 0..ROWS {
                    let codes = rows[row].as_ptr().add(batch * BATCH * GROUP_BYTES).cast::<v128>();
                    let scale = scales[row];
                    let mut sum = sums[row];
                    sum = add_group(sum, v128_load(codes), &x[0], i32x4_shuffle::<0, 0, 0, 0>(scale, scale));
                    let codes = codes.add(1);
                    sum = add_group(sum, v128_load(codes), &x[1], i32x4_shuffle::<1, 1, 1, 1>(scale, scale));
                    let codes = codes.add(1);
                    sum = add_group(sum, v128_load(codes), &x[2], i32x4_shuffle::<2, 2, 2, 2>(scale, scale));
                    let codes = codes.add(1);
                    sum = add_group(sum, v128_load(codes), &x[3], i32x4_shuffle::<3, 3, 3, 3>(scale, scale));
                    sums[row] = sum;
                }
            }
        }
        sums.map(|sum| {
            let pairs = f32x4_add(sum, i32x4_shuffle::<2, 3, 0, 1>(sum, sum));
            f32x4_extract_lane::<0>(pairs) + f32x4_extract_lane::<1>(pairs)
        })
    }

    /// A batch's steps as floats.
    ///
    /// # Safety
    /// [`BATCH`] bytes must be readable.
    #[inline(always)]
    unsafe fn load_steps(steps: *const i8) -> v128 {
        // SAFETY: the caller vouches for the bytes.
        let bytes = unsafe { v128_load32_zero(steps.cast()) };
        f32x4_convert_i32x4(i32x4_extend_low_i16x8(i16x8_extend_low_i8x16(bytes)))
    }

    #[inline(always)]
    fn add_group(sum: v128, codes: v128, x: &Group, scale: v128) -> v128 {
        let low = v128_and(codes, u8x16_splat(15));
        let high = u8x16_shr(codes, 4);
        f32x4_add(sum, f32x4_mul(f32x4_convert_i32x4(x.dot(low, high)), scale))
    }

    impl Group {
        fn new(x: &[i16; GROUP]) -> Self {
            let mut group = Self { parts: Self::parts(x), correction: i32x4_splat(0) };
            let eight = i8x16_splat(OFFSET as i8);
            group.correction = i32x4_neg(group.dot(eight, eight));
            group
        }
    }

    #[cfg(target_feature = "relaxed-simd")]
    impl Group {
        /// Upper and lower signed bytes of the first half of the columns, then of the second.
        fn parts(x: &[i16; GROUP]) -> [v128; PARTS] {
            let upper = |x: i16| ((x + 128) >> 8) as i8;
            let lower = |x: i16| x as i8;
            let part = |first: usize, digit: fn(i16) -> i8| {
                let digits: [i8; GROUP_BYTES] = std::array::from_fn(|index| digit(x[first + index]));
                // SAFETY: any 16 bytes are a vector.
                unsafe { v128_load(digits.as_ptr().cast()) }
            };
            [part(0, upper), part(0, lower), part(GROUP_BYTES, upper), part(GROUP_BYTES, lower)]
        }

        #[inline(always)]
        fn dot(&self, low: v128, high: v128) -> v128 {
            let [first_upper, first_lower, second_upper, second_lower] = self.parts;
            let upper = i32x4_relaxed_dot_i8x16_i7x16_add(first_upper, low, i32x4_splat(0));
            let upper = i32x4_relaxed_dot_i8x16_i7x16_add(second_upper, high, upper);
            let lower = i32x4_relaxed_dot_i8x16_i7x16_add(first_lower, low, self.correction);
            let lower = i32x4_relaxed_dot_i8x16_i7x16_add(second_lower, high, lower);
            i32x4_add(i32x4_shl(upper, 8), lower)
        }
    }

    #[cfg(not(target_feature = "relaxed-simd"))]
    impl Group {
        /// The columns in their order.
        fn parts(x: &[i16; GROUP]) -> [v128; PARTS] {
            std::array::from_fn(|part| {
                // SAFETY: a part is eight integers, of which there are four times as many.
                unsafe { v128_load(x.as_ptr().add(part * GROUP / PARTS).cast()) }
            })
        }

        #[inline(always)]
        fn dot(&self, low: v128, high: v128) -> v128 {
            let [a, b, c, d] = self.parts;
            let first = i32x4_add(
                i32x4_dot_i16x8(u16x8_extend_low_u8x16(low), a),
                i32x4_dot_i16x8(u16x8_extend_high_u8x16(low), b),
            );
            let second = i32x4_add(
                i32x4_dot_i16x8(u16x8_extend_low_u8x16(high), c),
                i32x4_dot_i16x8(u16x8_extend_high_u8x16(high), d),
            );
            i32x4_add(i32x4_add(first, second), self.correction)
        }
    }
}
