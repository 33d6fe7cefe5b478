//! Products of 4-bit rows with a vector of 16-bit integers, chosen at compile time like
//! [`super::super::dot`]. The sum of a group of columns is exact; groups meet their scales in single
//! precision.

use super::{QUARTERS, RoundedRows};
use crate::quant::Int4Matrix;
use crate::quant::int4::{GROUP, QUAD, QuadGroup};

#[cfg(not(target_feature = "simd128"))]
use portable::{Vector, dot_quads};
#[cfg(target_feature = "simd128")]
use simd::{Vector, dot_quads};

/// Codes are this much more than what they stand for.
const OFFSET: i32 = 8;

/// Four rows: groups, and a step for each of the rows.
type Quad<'a> = (&'a [QuadGroup], &'a [[i8; QUAD]]);

impl RoundedRows for Int4Matrix {
    type Vector = Vector;
    /// Both signed digits of an activation are bytes.
    const MAX: f32 = (127 * 256 + 127) as f32;
    type Products = [f64; QUAD];
    const ROWS: usize = QUAD;

    fn cols(&self) -> (usize, usize) {
        (Int4Matrix::cols(self), self.padded_cols())
    }

    fn vector(integers: &[i16]) -> Vector {
        Vector::new(integers)
    }

    fn products(&self, rows: [usize; QUARTERS], x: &Vector) -> [[f64; QUAD]; QUARTERS] {
        let sums = dot_quads(rows.map(|first| self.quad_rows(first)), x);
        std::array::from_fn(|quad| {
            let scale = |row| if row < self.rows() { self.scale(row) } else { 0.0 };
            std::array::from_fn(|row| f64::from(sums[quad][row]) * f64::from(scale(rows[quad] + row)))
        })
    }
}

#[cfg(not(target_feature = "simd128"))]
mod portable {
    use super::{GROUP, OFFSET, QUAD, QUARTERS, Quad, QuadGroup};

    pub struct Vector(Vec<i16>);

    impl Vector {
        pub fn new(integers: &[i16]) -> Self {
            Self(integers.to_vec())
        }
    }

    /// `Σ (code − 8) · step · x` of four times four rows.
    pub fn dot_quads(quads: [Quad<'_>; QUARTERS], x: &Vector) -> [[f32; QUAD]; QUARTERS] {
        quads.map(|(groups, steps)| {
            std::array::from_fn(|row| {
                let groups = groups.iter().zip(steps).zip(x.0.as_chunks::<GROUP>().0);
                groups
                    .map(|((group, steps), x)| dot_group(group, row, x) as f32 * f32::from(steps[row]))
                    .sum()
            })
        })
    }

    fn dot_group(group: &QuadGroup, row: usize, x: &[i16; GROUP]) -> i32 {
        let (first, second) = x.split_at(GROUP / 2);
        let codes = group.0.iter().flat_map(|part| part[row]);
        codes
            .zip(first.iter().zip(second))
            .map(|(codes, (first, second))| {
                (i32::from(codes & 15) - OFFSET) * i32::from(*first)
                    + (i32::from(codes >> 4) - OFFSET) * i32::from(*second)
            })
            .sum()
    }
}

#[cfg(target_feature = "simd128")]
mod simd {
    use super::{GROUP, OFFSET, QUAD, QUARTERS, Quad};
    use std::arch::wasm32::*;
    use std::hint::black_box;

    /// Vectors of a group's codes, in each of which a lane has two times four columns of a row.
    const PARTS: usize = 4;
    /// A low half of each element that a product has.
    #[cfg(target_feature = "relaxed-simd")]
    const MASK: v128 = u8x16(15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15);
    #[cfg(not(target_feature = "relaxed-simd"))]
    const MASK: v128 = u16x8(15, 15, 15, 15, 15, 15, 15, 15);

    /// The activations of a group, spread over the lanes of four rows beforehand: loads that do so take two
    /// instructions.
    struct Group {
        /// Of each part, as `spread` makes them.
        parts: [[v128; 4]; PARTS],
        /// What codes add to a row's sum by being 8 more than what they stand for, negated.
        correction: v128,
    }

    pub struct Vector(Vec<Group>);

    impl Vector {
        pub fn new(integers: &[i16]) -> Self {
            Self(integers.as_chunks::<GROUP>().0.iter().map(Group::new).collect())
        }
    }

    impl Group {
        fn new(x: &[i16; GROUP]) -> Self {
            let (low, high) = x.split_at(GROUP / 2);
            let columns = |half: &[i16], part: usize| half.as_chunks::<4>().0[part];
            let sum: i32 = x.iter().map(|x| i32::from(*x)).sum();
            Self {
                parts: std::array::from_fn(|part| spread(columns(low, part), columns(high, part))),
                correction: i32x4_splat(-OFFSET * sum),
            }
        }
    }

    /// `Σ (code − 8) · step · x` of four times four rows.
    pub fn dot_quads(quads: [Quad<'_>; QUARTERS], x: &Vector) -> [[f32; QUAD]; QUARTERS] {
        let groups = x.0.len();
        assert!(quads.iter().all(|(codes, steps)| codes.len() == groups && steps.len() == groups));
        // As in `opaque_masks`. Parts are counted for the same reason: engines order the instructions of a group's
        // straight code sum after sum, for which there are too few registers.
        let (mask, parts) = black_box((MASK, PARTS));
        let mut sums = [f32x4_splat(0.0); QUARTERS];
        for (index, x) in x.0.iter().enumerate() {
            let mut products = [[i32x4_splat(0), x.correction]; QUARTERS];
            for part in 0..parts.min(PARTS) {
                for (products, (codes, _)) in products.iter_mut().zip(&quads) {
                    *products = add_part(*products, load_part(&codes[index].0[part]), &x.parts[part], mask);
                }
            }
            for ((sum, products), (_, steps)) in sums.iter_mut().zip(products).zip(quads) {
                let products = f32x4_convert_i32x4(join(products));
                *sum = f32x4_add(*sum, f32x4_mul(products, load_steps(&steps[index])));
            }
        }
        sums.map(|sum| {
            let mut out = [0.0; QUAD];
            // SAFETY: four singles are a vector.
            unsafe { v128_store(out.as_mut_ptr().cast(), sum) };
            out
        })
    }

    /// The steps of four rows as floats.
    #[inline(always)]
    fn load_steps(steps: &[i8; QUAD]) -> v128 {
        // SAFETY: four bytes are read.
        let bytes = unsafe { v128_load32_zero(steps.as_ptr().cast()) };
        f32x4_convert_i32x4(i32x4_extend_low_i16x8(i16x8_extend_low_i8x16(bytes)))
    }

    #[inline(always)]
    fn load_part(codes: &[[u8; 4]; QUAD]) -> v128 {
        // SAFETY: a part is a vector.
        unsafe { v128_load(codes.as_ptr().cast()) }
    }

    /// In every lane upper and lower signed bytes of four columns, then of the four that are 16 further on.
    #[cfg(target_feature = "relaxed-simd")]
    fn spread(low: [i16; 4], high: [i16; 4]) -> [v128; 4] {
        let splat = |columns: [i16; 4], digit: fn(i16) -> i8| {
            i32x4_splat(i32::from_le_bytes(columns.map(|x| digit(x) as u8)))
        };
        let (upper, lower): (fn(i16) -> i8, fn(i16) -> i8) = (|x| ((x + 128) >> 8) as i8, |x| x as i8);
        [splat(low, upper), splat(low, lower), splat(high, upper), splat(high, lower)]
    }

    /// Adds to the sums of upper and of lower bytes.
    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    fn add_part([upper, lower]: [v128; 2], codes: v128, x: &[v128; 4], mask: v128) -> [v128; 2] {
        let (low, high) = (v128_and(codes, mask), v128_and(u16x8_shr(codes, 4), mask));
        let upper = i32x4_relaxed_dot_i8x16_i7x16_add(x[0], low, upper);
        let lower = i32x4_relaxed_dot_i8x16_i7x16_add(x[1], low, lower);
        [
            i32x4_relaxed_dot_i8x16_i7x16_add(x[2], high, upper),
            i32x4_relaxed_dot_i8x16_i7x16_add(x[3], high, lower),
        ]
    }

    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    fn join([upper, lower]: [v128; 2]) -> v128 {
        i32x4_add(i32x4_shl(upper, 8), lower)
    }

    /// In every lane the first and the third of four columns, then the others; then of the four that are 16 further on.
    #[cfg(not(target_feature = "relaxed-simd"))]
    fn spread(low: [i16; 4], high: [i16; 4]) -> [v128; 4] {
        let splat = |x: i16, y: i16| i16x8(x, y, x, y, x, y, x, y);
        let pairs = |[a, b, c, d]: [i16; 4]| [splat(a, c), splat(b, d)];
        let ([a, b], [c, d]) = (pairs(low), pairs(high));
        [a, b, c, d]
    }

    /// Adds to the sums of low and of high halves.
    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    fn add_part([low, high]: [v128; 2], codes: v128, x: &[v128; 4], mask: v128) -> [v128; 2] {
        let pair = |codes, even, odd_codes, odd| {
            i32x4_add(i32x4_dot_i16x8(v128_and(codes, mask), even), i32x4_dot_i16x8(odd_codes, odd))
        };
        let odd = v128_and(u16x8_shr(codes, 8), mask);
        [
            i32x4_add(low, pair(codes, x[0], odd, x[1])),
            i32x4_add(high, pair(u16x8_shr(codes, 4), x[2], u16x8_shr(codes, 12), x[3])),
        ]
    }

    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    fn join([low, high]: [v128; 2]) -> v128 {
        i32x4_add(low, high)
    }
}
