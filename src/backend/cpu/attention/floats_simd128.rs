//! The float products of attention in WebAssembly SIMD: four rows share every key and value that is
//! loaded, elements are widened in registers, and sums stay there. The relaxed build multiplies and adds in
//! one instruction, which rounds once.

use super::floats::{LANES, Weights};
use super::pass::{SPAN, Vectors, rows_of_scores};
use crate::backend::cpu::ahead::Ahead;
use crate::backend::cpu::lanes::{HALF_MASK, half_singles};
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
    /// Which elements the lanes of [`Self::load`] hold.
    const ORDER: [usize; LANES] = [0, 1, 2, 3, 4, 5, 6, 7];

    /// What [`Self::load`] needs. Loops keep it in a register, where engines make a constant anew each time.
    fn decoder() -> v128 {
        u32x4_splat(0)
    }

    /// [`LANES`] elements, each times [`Self::FACTOR`] less than it should be, in [`Self::ORDER`].
    ///
    /// # Safety
    /// So many must be readable.
    unsafe fn load(from: *const Self, decoder: v128) -> [v128; REGISTERS];
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load(from: *const Self, _: v128) -> [v128; REGISTERS] {
        // SAFETY: the caller vouches for eight floats.
        unsafe { [v128_load(from.cast()), v128_load(from.add(REGISTER).cast())] }
    }
}

/// A half's bits.
impl Element for u16 {
    const FACTOR: f32 = halves::REBIAS;
    const ORDER: [usize; LANES] = [0, 2, 4, 6, 1, 3, 5, 7];

    fn decoder() -> v128 {
        std::hint::black_box(HALF_MASK)
    }

    #[inline(always)]
    unsafe fn load(from: *const Self, mask: v128) -> [v128; REGISTERS] {
        // SAFETY: the caller vouches for eight halves.
        half_singles(unsafe { v128_load(from.cast()) }, mask)
    }
}

#[inline(always)]
fn multiply_add(a: v128, b: v128, sum: v128) -> v128 {
    #[cfg(target_feature = "relaxed-simd")]
    return f32x4_relaxed_madd(a, b, sum);
    #[cfg(not(target_feature = "relaxed-simd"))]
    f32x4_add(f32x4_mul(a, b), sum)
}

/// Puts up to [`super::pass::ROWS`] queries, `[rows, width]`, in the order in which [`scores`] reads them: for each
/// register that [`Element::load`] gives, the elements that it meets in every row. They are multiplied by
/// [`Element::FACTOR`].
pub fn arrange<E: Element>(queries: &mut [f32], width: usize) {
    let rows = queries.len() / width;
    let given = queries.to_vec();
    for (index, register) in queries.as_chunks_mut::<REGISTER>().0.iter_mut().enumerate() {
        let (row, index) = (index % rows, index / rows);
        let order = &E::ORDER[index % REGISTERS * REGISTER..];
        for (query, column) in register.iter_mut().zip(order) {
            *query = given[row * width + index / REGISTERS * LANES + column] * E::FACTOR;
        }
    }
}

/// Products of up to [`super::pass::ROWS`] queries, as [`arrange`] leaves them, with some keys, whose width is a
/// multiple of [`LANES`]. Those of a query start `stride` after those of the one before.
pub fn scores<E: Element>(queries: &[f32], keys: Vectors<'_, E>, out: &mut [f32], stride: usize) {
    match queries.len() / keys.width {
        1 => score_rows::<1, E>(queries, keys, out, stride),
        2 => score_rows::<2, E>(queries, keys, out, stride),
        3 => score_rows::<3, E>(queries, keys, out, stride),
        _ => score_rows::<4, E>(queries, keys, out, stride),
    }
}

#[inline(never)]
fn score_rows<const R: usize, E: Element>(
    queries: &[f32],
    keys: Vectors<'_, E>,
    out: &mut [f32],
    stride: usize,
) {
    let Vectors { data, width, ahead } = keys;
    let count = data.len() / width;
    let ahead = Ahead::new(ahead, count.div_ceil(KEYS));
    let mut rows = rows_of_scores::<R>(out, stride, count);
    for (step, first) in (0..count).step_by(KEYS).enumerate() {
        ahead.touch(step);
        let second = (first + 1).min(count - 1);
        let keys = [first, second].map(|position| &data[position * width..][..width]);
        for (out, [a, b]) in rows.iter_mut().zip(lane_sums::<R, E>(queries, keys)) {
            let halves = f32x4_add(i32x4_shuffle::<0, 1, 4, 5>(a, b), i32x4_shuffle::<2, 3, 6, 7>(a, b));
            let both = f32x4_add(halves, i32x4_shuffle::<1, 0, 3, 2>(halves, halves));
            out[second] = f32x4_extract_lane::<2>(both);
            out[first] = f32x4_extract_lane::<0>(both);
        }
    }
}

/// The products of queries with keys, their lanes still to be added.
// A function of its own: its registers are few enough only where nothing else is at hand.
#[inline(never)]
fn lane_sums<const R: usize, E: Element>(queries: &[f32], keys: [&[E]; KEYS]) -> [[v128; KEYS]; R] {
    let width = keys[0].len();
    assert!(queries.len() == R * width && width.is_multiple_of(LANES) && keys[1].len() == width);
    let decoder = E::decoder();
    let mut sums = [[f32x4_splat(0.0); KEYS]; R];
    for chunk in 0..width / LANES {
        // SAFETY: queries are `R` rows and keys have `width` elements, a multiple of `LANES` (asserted).
        unsafe {
            let queries =
                &*queries.as_ptr().add(chunk * R * LANES).cast::<[[[f32; REGISTER]; R]; REGISTERS]>();
            let keys = keys.map(|key| E::load(key.as_ptr().add(chunk * LANES), decoder));
            for (register, queries) in queries.iter().enumerate() {
                for (sums, query) in sums.iter_mut().zip(queries) {
                    let query = v128_load(query.as_ptr().cast());
                    for (sum, key) in sums.iter_mut().zip(&keys) {
                        *sum = multiply_add(query, key[register], *sum);
                    }
                }
            }
        }
    }
    sums
}

/// `out[row] += Σ weights[row][position] · values[position]` for up to [`super::pass::ROWS`] rows. The width is a
/// multiple of [`LANES`], and sums are in the order that [`restore`] undoes.
pub fn mix<E: Element>(weights: &Weights, values: Vectors<'_, E>, out: &mut [f32]) {
    match out.len() / values.width {
        1 => mix_rows::<1, E>(weights, values, out),
        2 => mix_rows::<2, E>(weights, values, out),
        3 => mix_rows::<3, E>(weights, values, out),
        _ => mix_rows::<4, E>(weights, values, out),
    }
}

// A function of its own: engines allocate registers worse in very large ones.
#[inline(never)]
fn mix_rows<const R: usize, E: Element>(weights: &Weights, values: Vectors<'_, E>, out: &mut [f32]) {
    let Vectors { data, width, ahead } = values;
    let count = data.len() / width;
    assert!(out.len() == R * width && width.is_multiple_of(LANES));
    assert!(data.len() == count * width && count <= SPAN);
    let decoder = E::decoder();
    let ahead = Ahead::new(ahead, width / LANES);
    for (step, column) in (0..width).step_by(LANES).enumerate() {
        ahead.touch(step);
        // SAFETY: `out` is `R` and `data` `count` rows of `width` elements, a multiple of `LANES` (asserted).
        unsafe {
            let mut sums: [[v128; REGISTERS]; R] =
                std::array::from_fn(|row| f32::load(out.as_ptr().add(row * width + column), decoder));
            let mut value = data.as_ptr().wrapping_add(column);
            for position in 0..count {
                let of_value = E::load(value, decoder);
                for (sums, weights) in sums.iter_mut().zip(weights) {
                    let weight = f32x4_splat(weights[position]);
                    for (sum, value) in sums.iter_mut().zip(of_value) {
                        *sum = multiply_add(weight, value, *sum);
                    }
                }
                value = value.wrapping_add(width);
            }
            for (row, sums) in sums.into_iter().enumerate() {
                let to = out.as_mut_ptr().add(row * width + column);
                v128_store(to.cast(), sums[0]);
                v128_store(to.add(REGISTER).cast(), sums[1]);
            }
        }
    }
}

/// Puts the sums of [`mix`] in the order of columns.
pub fn restore<E: Element>(sums: &mut [f32]) {
    for chunk in sums.as_chunks_mut::<LANES>().0 {
        let sums = *chunk;
        for (sum, column) in sums.into_iter().zip(E::ORDER) {
            chunk[column] = sum;
        }
    }
}
