//! The integer products of attention in WebAssembly SIMD. Scores and mixtures are the same sums over tiles: along the
//! columns of keys, or along the positions of values. Four rows share every tile that is loaded.

use super::integers::Factors;
use super::pass::{SPAN, rows_of_scores};
use crate::backend::cpu::ahead::Ahead;
use crate::backend::cpu::code_tiles::{Code, CodeTile, DEPTH, HeadCodes, LANES};
use crate::quant::rounding::WHOLE;
use std::arch::wasm32::*;

/// Sums that a row gets at a time: those of four rows take half of the registers.
const SUMS: usize = 2;

/// What keys and values are kept as.
pub trait Element: Code + 'static {
    /// A tile as 16-bit integers.
    fn load(tile: &CodeTile<Self>) -> v128;
}

impl Element for i16 {
    #[inline(always)]
    fn load(tile: &CodeTile<i16>) -> v128 {
        // SAFETY: a tile is eight elements, sixteen bytes.
        unsafe { v128_load(std::ptr::from_ref(tile).cast()) }
    }
}

impl Element for i8 {
    #[inline(always)]
    fn load(tile: &CodeTile<i8>) -> v128 {
        // SAFETY: a tile is eight elements, which are bytes.
        unsafe { i16x8_load_extend_i8x8(std::ptr::from_ref(tile).cast()) }
    }
}

/// Which tiles a sum is of.
#[derive(Clone, Copy)]
struct Path {
    /// How many.
    tiles: usize,
    /// From one to the next.
    step: usize,
    /// From those of a sum to those of the next one.
    beside: usize,
}

/// Scores of up to [`super::pass::ROWS`] queries with keys. Those of a query start `stride` after those of the one
/// before.
pub fn scores<E: Element>(
    queries: Factors<'_>,
    keys: HeadCodes<'_, E>,
    ahead: &[u8],
    out: &mut [f32],
    stride: usize,
) {
    match queries.units.len() {
        1 => score_rows::<1, E>(queries, keys, ahead, out, stride),
        2 => score_rows::<2, E>(queries, keys, ahead, out, stride),
        3 => score_rows::<3, E>(queries, keys, ahead, out, stride),
        _ => score_rows::<4, E>(queries, keys, ahead, out, stride),
    }
}

#[inline(never)]
fn score_rows<const R: usize, E: Element>(
    queries: Factors<'_>,
    keys: HeadCodes<'_, E>,
    ahead: &[u8],
    out: &mut [f32],
    stride: usize,
) {
    let across = queries.codes.len() / R / DEPTH;
    let path = Path { tiles: across, step: 1, beside: across };
    let groups = keys.units.as_chunks::<LANES>().0;
    let ahead = Ahead::new(ahead, groups.len().div_ceil(SUMS));
    let units = queries.units.first_chunk().expect("a unit a row");
    let mut rows = rows_of_scores::<R>(out, stride, keys.count);
    for (step, groups) in groups.chunks(SUMS).enumerate() {
        ahead.touch(step);
        let first = step * SUMS;
        let tiles = &keys.tiles[first * across..];
        match groups {
            [one] => {
                put_scores(tile_sums::<R, 1, E>(queries.codes, tiles, path), units, [one], first, &mut rows)
            }
            [one, other] => {
                let sums = tile_sums::<R, 2, E>(queries.codes, tiles, path);
                put_scores(sums, units, [one, other], first, &mut rows);
            }
            _ => unreachable!("chunks are of one or two"),
        }
    }
}

/// Writes sums, times what their units are worth, from the keys of group `first` on.
#[inline(always)]
fn put_scores<const R: usize, const S: usize>(
    sums: [[v128; S]; R],
    units: &[f32; R],
    key_units: [&[f32; LANES]; S],
    first: usize,
    rows: &mut [&mut [f32]; R],
) {
    for ((row, sums), unit) in rows.iter_mut().zip(sums).zip(units) {
        for ((group, sum), key_units) in (first..).zip(sums).zip(key_units) {
            let out = &mut row[group * LANES..];
            // SAFETY: four units are a vector, and so are four scores.
            unsafe {
                let worth = f32x4_mul(v128_load(key_units.as_ptr().cast()), f32x4_splat(*unit));
                let scores = f32x4_mul(f32x4_convert_i32x4(sum), worth);
                match out.first_chunk_mut::<LANES>() {
                    Some(out) => v128_store(out.as_mut_ptr().cast(), scores),
                    None => {
                        let mut all = [0.0f32; LANES];
                        v128_store(all.as_mut_ptr().cast(), scores);
                        out.copy_from_slice(&all[..out.len()]);
                    }
                }
            }
        }
    }
}

/// `out[row] += unit[row] · Σ weights[row][position] · values[position]` for up to [`super::pass::ROWS`] rows.
pub fn mix<E: Element>(weights: Factors<'_>, values: HeadCodes<'_, E>, ahead: &[u8], out: &mut [f32]) {
    match weights.units.len() {
        1 => mix_rows::<1, E>(weights, values, ahead, out),
        2 => mix_rows::<2, E>(weights, values, ahead, out),
        3 => mix_rows::<3, E>(weights, values, ahead, out),
        _ => mix_rows::<4, E>(weights, values, ahead, out),
    }
}

#[inline(never)]
fn mix_rows<const R: usize, E: Element>(
    weights: Factors<'_>,
    values: HeadCodes<'_, E>,
    ahead: &[u8],
    out: &mut [f32],
) {
    let across = out.len() / R / LANES;
    let path = Path { tiles: values.tiles.len() / across, step: across, beside: 1 };
    let ahead = Ahead::new(ahead, across.div_ceil(SUMS));
    let units = weights.units.first_chunk().expect("a unit a row");
    for (step, first) in (0..across).step_by(SUMS).enumerate() {
        ahead.touch(step);
        let tiles = &values.tiles[first..];
        match across - first {
            1 => add_mixed(tile_sums::<R, 1, E>(weights.codes, tiles, path), units, first, out),
            _ => add_mixed(tile_sums::<R, 2, E>(weights.codes, tiles, path), units, first, out),
        }
    }
}

/// Adds sums, times units, to the columns from those of tile `first` on.
#[inline(always)]
fn add_mixed<const R: usize, const S: usize>(
    sums: [[v128; S]; R],
    units: &[f32; R],
    first: usize,
    out: &mut [f32],
) {
    let width = out.len() / R;
    for (row, (sums, unit)) in sums.into_iter().zip(units).enumerate() {
        let out = &mut out[row * width + first * LANES..][..S * LANES];
        for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
            let to = out.as_mut_ptr().cast();
            // SAFETY: four floats are a vector.
            unsafe {
                let products = f32x4_mul(f32x4_convert_i32x4(sum), f32x4_splat(*unit));
                v128_store(to, f32x4_add(v128_load(to), products));
            }
        }
    }
}

/// `Σ factor · element` in each lane, for `R` rows of factors and `S` sums of tiles.
// A function of its own: its registers are few enough only where nothing else is at hand.
#[inline(never)]
fn tile_sums<const R: usize, const S: usize, E: Element>(
    factors: &[i16],
    tiles: &[CodeTile<E>],
    path: Path,
) -> [[v128; S]; R] {
    let Path { tiles: count, step, beside } = path;
    let row = factors.len() / R;
    assert!(0 < count && count * DEPTH <= row && (count - 1) * step + (S - 1) * beside < tiles.len());
    let mut sums = [[i32x4_splat(0); S]; R];
    let (mut factor, mut tile) = (factors.as_ptr(), tiles.as_ptr());
    for _ in 0..count {
        // SAFETY: rows have factors for so many tiles, and the last tile of the last sum is one of them (asserted).
        unsafe {
            let elements: [v128; S] = std::array::from_fn(|sum| E::load(&*tile.add(sum * beside)));
            for (index, sums) in sums.iter_mut().enumerate() {
                let pair = v128_load32_splat(factor.add(index * row).cast());
                for (sum, elements) in sums.iter_mut().zip(elements) {
                    *sum = i32x4_add(*sum, i32x4_dot_i16x8(elements, pair));
                }
            }
        }
        factor = factor.wrapping_add(DEPTH);
        tile = tile.wrapping_add(step);
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
