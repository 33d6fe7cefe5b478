//! Sums across the lanes of SIMD128 vectors, and halves and doubles in them.

use super::dot::TILE_ROWS;
use crate::quant::halves::PLACES;
use std::arch::wasm32::*;

/// The sum of the lanes of each of four vectors.
#[inline(always)]
pub fn lane_sums(sums: [v128; 4]) -> [i32; 4] {
    let [a, b, c, d] = sums;
    let ab = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let cd = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    let all = i32x4_add(i32x4_shuffle::<0, 1, 4, 5>(ab, cd), i32x4_shuffle::<2, 3, 6, 7>(ab, cd));
    let mut out = [0; 4];
    // SAFETY: four integers are a vector.
    unsafe { v128_store(out.as_mut_ptr().cast(), all) };
    out
}

/// Masks of rows' codes in place that the compiler does not know: constants it would make anew in every round of a
/// loop, of three instructions each.
#[inline(always)]
pub fn opaque_masks<const ROWS: usize>(splat: impl Fn(i16) -> v128) -> [v128; ROWS] {
    std::hint::black_box(std::array::from_fn(|row| splat(3 << (2 * row))))
}

/// The sum of the lanes of each vector of a tile.
#[inline(always)]
pub fn tile_sums<const V: usize>(sums: [[v128; TILE_ROWS]; V]) -> [[i32; TILE_ROWS]; V] {
    let mut out = [[0; TILE_ROWS]; V];
    for vector in (0..V).step_by(2) {
        let second = sums[(vector + 1).min(V - 1)];
        let [a, b, c, d] = lane_sums([sums[vector][0], sums[vector][1], second[0], second[1]]);
        out[vector] = [a, b];
        if vector + 1 < V {
            out[vector + 1] = [c, d];
        }
    }
    out
}

/// The lower four of eight halves as singles that are [`crate::quant::halves::REBIAS`] times too small.
#[inline(always)]
pub fn half_singles_low(halves: v128) -> v128 {
    place(i32x4_extend_low_i16x8(halves))
}

/// [`half_singles_low`] of the upper four.
#[inline(always)]
pub fn half_singles_high(halves: v128) -> v128 {
    place(i32x4_extend_high_i16x8(halves))
}

/// [`crate::quant::halves::place`] of sign-extended halves.
#[inline(always)]
fn place(extended: v128) -> v128 {
    v128_and(i32x4_shl(extended, 13), HALF_MASK)
}

/// [`PLACES`] in every lane.
pub const HALF_MASK: v128 = u32x4(PLACES, PLACES, PLACES, PLACES);

/// Eight halves as singles that are [`crate::quant::halves::REBIAS`] times too small: those of even index, then
/// the odd ones, which takes fewer instructions than their own order. `mask` is [`HALF_MASK`].
#[inline(always)]
pub fn half_singles(halves: v128, mask: v128) -> [v128; 2] {
    [i32x4_shr(i32x4_shl(halves, 16), 3), i32x4_shr(halves, 3)].map(|lanes| v128_and(lanes, mask))
}

/// Four singles as doubles.
#[inline(always)]
pub fn promote(singles: v128) -> [v128; 2] {
    let upper = i32x4_shuffle::<2, 3, 2, 3>(singles, singles);
    [f64x2_promote_low_f32x4(singles), f64x2_promote_low_f32x4(upper)]
}

/// Four doubles as singles.
#[inline(always)]
pub fn demote([lower, upper]: [v128; 2]) -> v128 {
    // Not a shuffle, in which the compiler would see four conversions one by one.
    let to_upper = i8x16(16, 16, 16, 16, 16, 16, 16, 16, 0, 1, 2, 3, 4, 5, 6, 7);
    v128_or(f32x4_demote_f64x2_zero(lower), i8x16_swizzle(f32x4_demote_f64x2_zero(upper), to_upper))
}
