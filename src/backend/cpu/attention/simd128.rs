//! The float products of attention in WebAssembly SIMD: four rows share every key and value that is
//! loaded, elements are widened in registers, and sums stay there. The relaxed build multiplies and adds in
//! one instruction, which rounds once.

use super::pass::{LANES, ROWS, SPAN};
use crate::backend::cpu::lanes::{half_singles_high, half_singles_low};
use crate::quant::halves;
use std::arch::wasm32::*;

/// Keys that meet the rows at a time.
const KEYS: usize = 2;
/// Lanes of a vector register.
const REGISTER: usize = 4;
/// Registers that [`LANES`] elements take.
const REGISTERS: usize = LANES / REGISTER;

/// What keys and values are kept as.
pub trait Element: Copy {
    /// What products with elements must be multiplied by.
    const FACTOR: f32 = 1.0;

    /// [`LANES`] elements, each times [`Self::FACTOR`] less than it should be.
    ///
    /// # Safety
    /// So many must be readable.
    unsafe fn load(from: *const Self) -> [v128; REGISTERS];
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load(from: *const Self) -> [v128; REGISTERS] {
        // SAFETY: the caller vouches for eight floats.
        unsafe { [v128_load(from.cast()), v128_load(from.add(REGISTER).cast())] }
    }
}

/// A half's bits.
impl Element for u16 {
    const FACTOR: f32 = halves::REBIAS;

    #[inline(always)]
    unsafe fn load(from: *const Self) -> [v128; REGISTERS] {
        // SAFETY: the caller vouches for eight halves.
        let halves = unsafe { v128_load(from.cast()) };
        [half_singles_low(halves), half_singles_high(halves)]
    }
}

impl Element for i8 {
    #[inline(always)]
    unsafe fn load(from: *const Self) -> [v128; REGISTERS] {
        // SAFETY: the caller vouches for eight bytes.
        let integers = unsafe { i16x8_load_extend_i8x8(from) };
        [
            f32x4_convert_i32x4(i32x4_extend_low_i16x8(integers)),
            f32x4_convert_i32x4(i32x4_extend_high_i16x8(integers)),
        ]
    }
}

#[inline(always)]
fn multiply_add(a: v128, b: v128, sum: v128) -> v128 {
    #[cfg(target_feature = "relaxed-simd")]
    return f32x4_relaxed_madd(a, b, sum);
    #[cfg(not(target_feature = "relaxed-simd"))]
    f32x4_add(f32x4_mul(a, b), sum)
}

/// Products of up to [`ROWS`] queries with some keys; all are `width` wide, a multiple of [`LANES`]. Those of
/// a query start `stride` after those of the one before.
pub fn scores<E: Element>(queries: &[f32], keys: &[E], width: usize, out: &mut [f32], stride: usize) {
    match queries.len() / width {
        1 => score_rows::<1, E>(queries, keys, width, out, stride),
        2 => score_rows::<2, E>(queries, keys, width, out, stride),
        3 => score_rows::<3, E>(queries, keys, width, out, stride),
        _ => score_rows::<4, E>(queries, keys, width, out, stride),
    }
}

// A function of its own: engines allocate registers worse in very large ones.
#[inline(never)]
fn score_rows<const R: usize, E: Element>(
    queries: &[f32],
    keys: &[E],
    width: usize,
    out: &mut [f32],
    stride: usize,
) {
    let count = keys.len() / width;
    assert!(queries.len() == R * width && width.is_multiple_of(LANES) && keys.len() == count * width);
    for first in (0..count).step_by(KEYS) {
        let second = (first + 1).min(count - 1);
        let mut sums = [[f32x4_splat(0.0); KEYS]; R];
        for column in (0..width).step_by(LANES) {
            // SAFETY: queries are `R` and keys `count` rows of `width` elements, a multiple of `LANES`
            // (asserted).
            unsafe {
                let key = [first, second].map(|index| E::load(keys.as_ptr().add(index * width + column)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let query = f32::load(queries.as_ptr().add(row * width + column));
                    for (sum, key) in sums.iter_mut().zip(key) {
                        *sum = multiply_add(query[0], key[0], *sum);
                        *sum = multiply_add(query[1], key[1], *sum);
                    }
                }
            }
        }
        for (out, [a, b]) in out.chunks_mut(stride).zip(sums) {
            let halves = f32x4_add(i32x4_shuffle::<0, 1, 4, 5>(a, b), i32x4_shuffle::<2, 3, 6, 7>(a, b));
            let both = f32x4_add(halves, i32x4_shuffle::<1, 0, 3, 2>(halves, halves));
            out[second] = f32x4_extract_lane::<2>(both);
            out[first] = f32x4_extract_lane::<0>(both);
        }
    }
}

/// `out[row] += Σ weights[row][position] · values[position]` for up to [`ROWS`] rows; all vectors are
/// `width` wide, a multiple of [`LANES`].
pub fn mix<E: Element>(weights: &[[f32; SPAN]; ROWS], values: &[E], width: usize, out: &mut [f32]) {
    match out.len() / width {
        1 => mix_rows::<1, E>(weights, values, width, out),
        2 => mix_rows::<2, E>(weights, values, width, out),
        3 => mix_rows::<3, E>(weights, values, width, out),
        _ => mix_rows::<4, E>(weights, values, width, out),
    }
}

// A function of its own: engines allocate registers worse in very large ones.
#[inline(never)]
fn mix_rows<const R: usize, E: Element>(
    weights: &[[f32; SPAN]; ROWS],
    values: &[E],
    width: usize,
    out: &mut [f32],
) {
    let count = values.len() / width;
    assert!(out.len() == R * width && width.is_multiple_of(LANES));
    assert!(values.len() == count * width && count <= SPAN);
    for column in (0..width).step_by(LANES) {
        // SAFETY: `out` is `R` and `values` `count` rows of `width` elements, a multiple of `LANES`
        // (asserted).
        unsafe {
            let mut sums: [[v128; REGISTERS]; R] =
                std::array::from_fn(|row| f32::load(out.as_ptr().add(row * width + column)));
            for position in 0..count {
                let value = E::load(values.as_ptr().add(position * width + column));
                for (sums, weights) in sums.iter_mut().zip(weights) {
                    let weight = f32x4_splat(weights[position]);
                    for (sum, value) in sums.iter_mut().zip(value) {
                        *sum = multiply_add(weight, value, *sum);
                    }
                }
            }
            for (row, sums) in sums.into_iter().enumerate() {
                let to = out.as_mut_ptr().add(row * width + column);
                v128_store(to.cast(), sums[0]);
                v128_store(to.add(REGISTER).cast(), sums[1]);
            }
        }
    }
}
