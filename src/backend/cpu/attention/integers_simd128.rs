//! The integer products of attention in WebAssembly SIMD: four rows share every key and value that is loaded, and
//! sums stay in registers.

use super::ahead::Ahead;
use super::integers::Weights;
use super::pass::{SPAN, Vectors, rows_of_scores};
use crate::backend::cpu::cache::{CODE_ALIGN, Code};
use crate::quant::rounding::WHOLE;
use std::arch::wasm32::*;

/// Keys that meet the rows at a time.
const KEYS: usize = 2;
/// Values that meet the rows at a time: the instruction adds the products of two.
const VALUES: usize = 2;
/// Lanes of a register of sums.
const LANES: usize = 4;

/// What keys and values are kept as.
pub trait Element: Code + bytemuck::NoUninit {
    /// [`CODE_ALIGN`] elements as 16-bit integers.
    ///
    /// # Safety
    /// So many must be readable.
    unsafe fn load(from: *const Self) -> v128;
}

impl Element for i16 {
    #[inline(always)]
    unsafe fn load(from: *const Self) -> v128 {
        // SAFETY: the caller vouches for eight elements.
        unsafe { v128_load(from.cast()) }
    }
}

impl Element for i8 {
    #[inline(always)]
    unsafe fn load(from: *const Self) -> v128 {
        // SAFETY: the caller vouches for eight elements.
        unsafe { i16x8_load_extend_i8x8(from) }
    }
}

/// Products of up to [`super::pass::ROWS`] queries with some keys: a query's [`CODE_ALIGN`] columns are followed by
/// those of the next one. The products of a query start `stride` after those of the one before.
pub fn scores<E: Element>(queries: &[i16], keys: Vectors<'_, E>, out: &mut [f32], stride: usize) {
    match queries.len() / keys.width {
        1 => score_rows::<1, E>(queries, keys, out, stride),
        2 => score_rows::<2, E>(queries, keys, out, stride),
        3 => score_rows::<3, E>(queries, keys, out, stride),
        _ => score_rows::<4, E>(queries, keys, out, stride),
    }
}

#[inline(never)]
fn score_rows<const R: usize, E: Element>(
    queries: &[i16],
    keys: Vectors<'_, E>,
    out: &mut [f32],
    stride: usize,
) {
    let Vectors { data, width, ahead } = keys;
    let count = data.len() / width;
    let ahead = Ahead::new(ahead, count.div_ceil(LANES));
    let mut rows = rows_of_scores::<R>(out, stride, count);
    for (step, first) in (0..count).step_by(LANES).enumerate() {
        ahead.touch(step);
        let key = |index: usize| &data[(first + index).min(count - 1) * width..][..width];
        let left = lane_sums::<R, E>(queries, [key(0), key(1)]);
        let right = lane_sums::<R, E>(queries, [key(2), key(3)]);
        for ((out, [a, b]), [c, d]) in rows.iter_mut().zip(left).zip(right) {
            let sums = add_lanes([a, b, c, d]);
            let out = &mut out[first..];
            match out.first_chunk_mut::<LANES>() {
                // SAFETY: a chunk is four floats.
                Some(out) => unsafe { v128_store(out.as_mut_ptr().cast(), sums) },
                None => {
                    let mut all = [0.0f32; LANES];
                    // SAFETY: they are four floats.
                    unsafe { v128_store(all.as_mut_ptr().cast(), sums) };
                    out.copy_from_slice(&all[..out.len()]);
                }
            }
        }
    }
}

/// The sum of the lanes of each vector, as floats: all lanes together may take more than 32 bits.
#[inline(always)]
fn add_lanes(sums: [v128; LANES]) -> v128 {
    let [a, b, c, d] = sums.map(|sum| f32x4_convert_i32x4(sum));
    let ab = f32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let cd = f32x4_add(i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    f32x4_add(i32x4_shuffle::<0, 1, 4, 5>(ab, cd), i32x4_shuffle::<2, 3, 6, 7>(ab, cd))
}

/// The products of queries with keys, their lanes still to be added.
// A function of its own: its registers are few enough only where nothing else is at hand.
#[inline(never)]
fn lane_sums<const R: usize, E: Element>(queries: &[i16], keys: [&[E]; KEYS]) -> [[v128; KEYS]; R] {
    let width = keys[0].len();
    assert!(queries.len() == R * width && width.is_multiple_of(CODE_ALIGN) && keys[1].len() == width);
    let mut sums = [[i32x4_splat(0); KEYS]; R];
    for chunk in 0..width / CODE_ALIGN {
        // SAFETY: queries are `R` rows and keys have `width` elements, a multiple of `CODE_ALIGN` (asserted).
        unsafe {
            let queries = &*queries.as_ptr().add(chunk * R * CODE_ALIGN).cast::<[[i16; CODE_ALIGN]; R]>();
            let keys = keys.map(|key| E::load(key.as_ptr().add(chunk * CODE_ALIGN)));
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = i16::load(query.as_ptr());
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum = i32x4_add(*sum, i32x4_dot_i16x8(query, key));
                }
            }
        }
    }
    sums
}

/// `out[row] += unit[row] · Σ weights[row][position] · values[position]` for up to [`super::pass::ROWS`] rows.
pub fn mix<E: Element>(weights: &Weights, values: Vectors<'_, E>, out: &mut [f32]) {
    match out.len() / values.width {
        1 => mix_rows::<1, E>(weights, values, out),
        2 => mix_rows::<2, E>(weights, values, out),
        3 => mix_rows::<3, E>(weights, values, out),
        _ => mix_rows::<4, E>(weights, values, out),
    }
}

#[inline(never)]
fn mix_rows<const R: usize, E: Element>(weights: &Weights, values: Vectors<'_, E>, out: &mut [f32]) {
    let Vectors { data, width, ahead } = values;
    let count = data.len() / width;
    assert!(out.len() == R * width && width.is_multiple_of(CODE_ALIGN));
    assert!(data.len() == count * width && 0 < count && count <= SPAN);
    let ahead = Ahead::new(ahead, width / CODE_ALIGN);
    for (step, column) in (0..width).step_by(CODE_ALIGN).enumerate() {
        ahead.touch(step);
        let sums = column_sums::<R, E>(&weights.codes, &data[column..], width, count);
        for (row, (sums, unit)) in sums.into_iter().zip(weights.units).enumerate() {
            let out = &mut out[row * width + column..][..CODE_ALIGN];
            for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                let to = out.as_mut_ptr().cast();
                // SAFETY: four floats.
                unsafe {
                    let products = f32x4_mul(f32x4_convert_i32x4(sum), f32x4_splat(unit));
                    v128_store(to, f32x4_add(v128_load(to), products));
                }
            }
        }
    }
}

/// `Σ weight · value` for the first [`CODE_ALIGN`] columns of `count` rows of values, `stride` apart.
// A function of its own: its registers are few enough only where nothing else is at hand.
#[inline(never)]
fn column_sums<const R: usize, E: Element>(
    weights: &[[i16; SPAN]],
    values: &[E],
    stride: usize,
    count: usize,
) -> [[v128; CODE_ALIGN / LANES]; R] {
    assert!(weights.len() >= R && count <= SPAN && values.len() >= (count - 1) * stride + CODE_ALIGN);
    let mut sums = [[i32x4_splat(0); CODE_ALIGN / LANES]; R];
    let mut value = values.as_ptr();
    let weights = weights.as_ptr().cast::<i16>();
    for first in (0..count).step_by(VALUES) {
        // SAFETY: there are `count` rows of values, the last of which is read twice if they are odd: its second
        // weight is zero. Weights are `R` rows of `SPAN`, which is even.
        unsafe {
            let next = if first + 1 < count { value.add(stride) } else { value };
            let [a, b] = [E::load(value), E::load(next)];
            let low = i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(a, b);
            let high = i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(a, b);
            for (row, sums) in sums.iter_mut().enumerate() {
                let pair = v128_load32_splat(weights.add(row * SPAN + first).cast());
                sums[0] = i32x4_add(sums[0], i32x4_dot_i16x8(low, pair));
                sums[1] = i32x4_add(sums[1], i32x4_dot_i16x8(high, pair));
            }
            value = value.wrapping_add(VALUES * stride);
        }
    }
    sums
}

/// Eight products.
#[inline(always)]
fn products(a: &[f32; 8], b: &[f32; 8]) -> [v128; 2] {
    let (a, b) = (a.as_ptr().cast::<v128>(), b.as_ptr().cast::<v128>());
    // SAFETY: eight floats are two vectors.
    unsafe { [f32x4_mul(v128_load(a), v128_load(b)), f32x4_mul(v128_load(a.add(1)), v128_load(b.add(1)))] }
}

/// The sum of products, which are not negative, and the largest.
#[inline(always)]
pub fn measure_products(a: &[f32; SPAN], b: &[f32; SPAN]) -> (f32, f32) {
    let zero = [f32x4_splat(0.0); 2];
    let (mut sums, mut most) = (zero, zero);
    for (a, b) in a.as_chunks().0.iter().zip(b.as_chunks().0) {
        let [low, high] = products(a, b);
        sums = [f32x4_add(sums[0], low), f32x4_add(sums[1], high)];
        most = [f32x4_pmax(most[0], low), f32x4_pmax(most[1], high)];
    }
    let joined = |[a, b]: [v128; 2], join: fn(v128, v128) -> v128| {
        let all = join(a, b);
        let all = join(all, i64x2_shuffle::<1, 0>(all, all));
        f32x4_extract_lane::<0>(join(all, i32x4_shuffle::<1, 0, 3, 2>(all, all)))
    };
    (joined(sums, f32x4_add), joined(most, f32x4_pmax))
}

/// Products times a factor, rounded.
#[inline(always)]
pub fn round_products(a: &[f32; SPAN], b: &[f32; SPAN], factor: f32, codes: &mut [i16; SPAN]) {
    let (factor, whole) = (f32x4_splat(factor), f32x4_splat(WHOLE));
    // The bits of a float beside WHOLE count from WHOLE's.
    let rounded = |product| i32x4_sub(f32x4_add(f32x4_mul(product, factor), whole), whole);
    for (codes, (a, b)) in
        codes.as_chunks_mut::<8>().0.iter_mut().zip(a.as_chunks().0.iter().zip(b.as_chunks().0))
    {
        let [low, high] = products(a, b).map(rounded);
        // SAFETY: eight codes are one vector.
        unsafe { v128_store(codes.as_mut_ptr().cast(), i16x8_narrow_i32x4(low, high)) };
    }
}
