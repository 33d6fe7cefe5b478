//! One token times a half-precision matrix in WebAssembly SIMD128: four rows in lock step, so that an
//! activation is loaded once for four of them and four addresses are read at once, and halves are
//! widened in registers.

use crate::quant::{DenseEncoding, DenseMatrix};
use std::arch::wasm32::*;

/// Rows in lock step.
const ROWS: usize = 4;
/// Columns of one step: a register of halves.
const STEP: usize = 8;
/// A half's bits shifted into a single's place are the half times this much too small.
const F16_REBIAS: f32 = 5.192_297e33; // 2¹¹²
/// Activations below this can carry [`F16_REBIAS`] without overflow.
const F16_LIMIT: f32 = 60_000.0;

/// `out += x · Wᵀ` for one token, where there is a kernel for the encoding and the numbers; else `false`
/// and nothing is done.
pub fn gemv_add(weight: &DenseMatrix, x: &[f32], out: &mut [f32]) -> bool {
    match weight.encoding() {
        DenseEncoding::F16 if x.iter().all(|x| x.abs() < F16_LIMIT) => {
            // The factor goes into the activations, once, instead of into every weight.
            let x: Vec<f32> = x.iter().map(|x| x * F16_REBIAS).collect();
            gemv(weight, &x, out, f16_low, f16_high, |bits| f32::from_bits(f16_bits(bits)));
        }
        DenseEncoding::BF16 => {
            gemv(weight, x, out, bf16_low, bf16_high, |bits| f32::from_bits(u32::from(bits) << 16));
        }
        _ => return false,
    }
    true
}

#[inline(always)]
fn gemv(
    weight: &DenseMatrix,
    x: &[f32],
    out: &mut [f32],
    low: impl Fn(v128) -> v128 + Copy,
    high: impl Fn(v128) -> v128 + Copy,
    single: impl Fn(u16) -> f32 + Copy,
) {
    let rows = weight.rows();
    for first in (0..rows).step_by(ROWS) {
        // The last rows are done again rather than by a kernel of their own.
        let start = first.min(rows.saturating_sub(ROWS));
        let row = |index: usize| weight.row((start + index).min(rows - 1));
        let sums = dot_rows([row(0), row(1), row(2), row(3)], x, low, high, single);
        for index in first..rows.min(first + ROWS) {
            out[index] += sums[index - start];
        }
    }
}

#[inline(always)]
fn dot_rows(
    rows: [&[u8]; ROWS],
    x: &[f32],
    low: impl Fn(v128) -> v128,
    high: impl Fn(v128) -> v128,
    single: impl Fn(u16) -> f32,
) -> [f32; ROWS] {
    assert!(rows.iter().all(|row| row.len() == 2 * x.len()));
    let mut even = [f32x4_splat(0.0); ROWS];
    let mut odd = even;
    let steps = x.len() / STEP;
    for step in 0..steps {
        // SAFETY: `x` has 8 values and every row 16 bytes for each step (asserted).
        unsafe {
            let x = x.as_ptr().add(step * STEP);
            let (x_low, x_high) = (v128_load(x.cast()), v128_load(x.add(4).cast()));
            for row in 0..ROWS {
                let halves = v128_load(rows[row].as_ptr().add(2 * step * STEP).cast());
                even[row] = f32x4_add(even[row], f32x4_mul(low(halves), x_low));
                odd[row] = f32x4_add(odd[row], f32x4_mul(high(halves), x_high));
            }
        }
    }
    std::array::from_fn(|row| {
        let sum = f32x4_add(even[row], odd[row]);
        let pairs = f32x4_add(sum, i32x4_shuffle::<2, 3, 0, 1>(sum, sum));
        let rest = rows[row][2 * steps * STEP..].as_chunks::<2>().0.iter().zip(&x[steps * STEP..]);
        let rest: f32 = rest.map(|(bits, x)| single(u16::from_le_bytes(*bits)) * x).sum();
        f32x4_extract_lane::<0>(pairs) + f32x4_extract_lane::<1>(pairs) + rest
    })
}

/// Sign, exponent and mantissa of a half in a single's places; the exponent keeps the half's bias.
fn f16_bits(half: u16) -> u32 {
    (u32::from(half & 0x8000) << 16) | (u32::from(half & 0x7fff) << 13)
}

#[inline(always)]
fn f16_low(halves: v128) -> v128 {
    f16_place(i32x4_extend_low_i16x8(halves))
}

#[inline(always)]
fn f16_high(halves: v128) -> v128 {
    f16_place(i32x4_extend_high_i16x8(halves))
}

#[inline(always)]
fn f16_place(extended: v128) -> v128 {
    // The sign was extended: of its copies the top one is kept.
    v128_and(i32x4_shl(extended, 13), u32x4_splat(0x8fff_e000))
}

#[inline(always)]
fn bf16_low(halves: v128) -> v128 {
    i32x4_shl(u32x4_extend_low_u16x8(halves), 16)
}

#[inline(always)]
fn bf16_high(halves: v128) -> v128 {
    i32x4_shl(u32x4_extend_high_u16x8(halves), 16)
}
