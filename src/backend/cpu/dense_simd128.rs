//! One token times a half-precision matrix in WebAssembly SIMD128: four rows in lock step, so that an
//! activation is loaded once for four of them and four addresses are read at once, and halves are
//! widened in registers.

use super::lanes::{half_singles_high, half_singles_low};
use crate::quant::{DenseEncoding, DenseMatrix, halves};
use std::arch::wasm32::*;
use std::ops::Range;

/// Rows in lock step.
const ROWS: usize = 4;
/// Columns of one step: a register of halves.
const STEP: usize = 8;
/// Activations below this can carry [`halves::REBIAS`] without overflow.
const F16_LIMIT: f32 = 60_000.0;

/// `out += x · Wᵀ` for one token and some rows of the weight, where there is a kernel for the encoding and the numbers; else `false`
/// and nothing is done.
pub fn gemv_add(weight: &DenseMatrix, rows: Range<usize>, x: &[f32], out: &mut [f32]) -> bool {
    match weight.encoding() {
        DenseEncoding::F16 if x.iter().all(|x| x.abs() < F16_LIMIT) => {
            // The factor goes into the activations, once, instead of into every weight.
            let x: Vec<f32> = x.iter().map(|x| x * halves::REBIAS).collect();
            gemv(weight, rows, &x, out, half_singles_low, half_singles_high, |bits| {
                f32::from_bits(halves::place(bits))
            });
        }
        DenseEncoding::BF16 => {
            gemv(weight, rows, x, out, bf16_low, bf16_high, |bits| f32::from_bits(u32::from(bits) << 16));
        }
        _ => return false,
    }
    true
}

#[inline(always)]
fn gemv(
    weight: &DenseMatrix,
    rows: Range<usize>,
    x: &[f32],
    out: &mut [f32],
    low: impl Fn(v128) -> v128 + Copy,
    high: impl Fn(v128) -> v128 + Copy,
    single: impl Fn(u16) -> f32 + Copy,
) {
    for first in rows.clone().step_by(ROWS) {
        // Where fewer are left, the last row is done several times rather than by a kernel of its own.
        let row = |index: usize| weight.row((first + index).min(rows.end - 1));
        let sums = dot_rows([row(0), row(1), row(2), row(3)], x, low, high, single);
        for (out, sum) in out[first - rows.start..].iter_mut().zip(sums) {
            *out += sum;
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

#[inline(always)]
fn bf16_low(halves: v128) -> v128 {
    i32x4_shl(u32x4_extend_low_u16x8(halves), 16)
}

#[inline(always)]
fn bf16_high(halves: v128) -> v128 {
    i32x4_shl(u32x4_extend_high_u16x8(halves), 16)
}
