//! What is done to many floats, written so that the compiler vectorises it: a dot product with independent
//! accumulators, an exponential without branches.

use crate::quant::rounding::WHOLE;

/// Accumulators of [`dot`]: four SIMD128 registers.
const LANES: usize = 16;

/// `Σ a·b`
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sums[0] + rest
}

/// Calls `body` with so many values of each row, in order; after the last value come zeros.
#[inline(always)]
pub(crate) fn for_chunks<const N: usize, const ROWS: usize>(
    rows: [&[f32]; ROWS],
    mut body: impl FnMut([&[f32; N]; ROWS]),
) {
    let len = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == len));
    let parts = rows.map(<[f32]>::as_chunks::<N>);
    let last = parts.map(|(_, rest)| std::array::from_fn(|i| rest.get(i).copied().unwrap_or_default()));
    for index in 0..len.div_ceil(N) {
        // One call for all, so that it becomes a part of its caller.
        body(std::array::from_fn(|row| parts[row].0.get(index).unwrap_or(&last[row])));
    }
}

/// The largest value; `-∞` of nothing. (`f32::max` is a function call in WebAssembly, where its treatment
/// of NaN is not the instruction's.)
pub(crate) fn maximum(values: &[f32]) -> f32 {
    let larger = |max: f32, value: &f32| if *value > max { *value } else { max };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = larger(*lane, value));
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, larger)
}

/// The largest magnitude; 0 of nothing, and NaN is passed over.
pub(crate) fn largest(values: &[f32]) -> f32 {
    let larger = |max: f32, x: &f32| if x.abs() > max { x.abs() } else { max };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane = larger(*lane, x));
    }
    lanes.iter().chain(rest).fold(0.0, larger)
}

/// `Σ |x|`
pub(crate) fn sum_of_magnitudes(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x.abs());
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| x.abs()).sum::<f32>()
}

/// Replaces scores by exponentials of how far each is below the largest. Returns their sum, in double precision: a
/// softmax is their quotient.
#[inline(never)]
pub(crate) fn exponentials(scores: &mut [f32]) -> f64 {
    let max = maximum(scores);
    let mut lanes = [0.0f64; 4];
    let (chunks, rest) = scores.as_chunks_mut::<LANES>();
    for chunk in chunks {
        *chunk = chunk.map(|score| exp(score - max));
        // Four are added in single precision: what is rounded away is as little as each of them lacks.
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f64::from((chunk[lane] + chunk[lane + 4]) + (chunk[lane + 8] + chunk[lane + 12]));
        }
    }
    rest.iter_mut().for_each(|score| *score = exp(*score - max));
    lanes.iter().sum::<f64>() + rest.iter().map(|score| f64::from(*score)).sum::<f64>()
}

/// `eˣ` for `x ≤ 88`, within 0.7 units in the last place of an `f32`, without branches or a library call: the same
/// value natively and in WebAssembly, where it also vectorises. What is no normal number becomes zero.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // ln 2 in two parts, the first so short that its multiples are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    /// The logarithm of the smallest normal number, rounded up.
    const LEAST: f32 = -87.336_54;
    let within = if x > LEAST { x } else { LEAST };
    let shifted = within * std::f32::consts::LOG2_E + WHOLE;
    let power = shifted - WHOLE;
    let (first, second) = (within - power * LN_2[0], power * LN_2[1]);
    let rest = first - second;
    let lost = (first - rest) - second;
    // (eʳ - 1 - r) / r² on |r| ≤ ln 2 / 2, fitted for the least relative error of eʳ: 3e-9.
    let mut sum = 0.001_381_453_6;
    for coefficient in [0.008_368_745, 0.041_668_393, 0.166_665_21, 0.499_999_94] {
        sum = sum * rest + coefficient;
    }
    let sum = rest * rest * sum + lost;
    // 1 + rest + sum, with what the first addition rounds away.
    let high = 1.0 + rest;
    let value = high + ((rest - (high - 1.0)) + sum);
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if x > LEAST { value * scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_that_of_double_precision() {
        for step in -87_336..=88_000 {
            let x = step as f32 / 1000.0;
            let wanted = f64::from(x).exp();
            assert!((f64::from(exp(x)) - wanted).abs() <= wanted * 7e-8, "{x}: {} {wanted}", exp(x));
        }
        for x in [-87.337, -100.0, -1e30, f32::NEG_INFINITY] {
            assert_eq!(exp(x), 0.0);
        }
    }

    #[test]
    fn dot_handles_lengths_that_are_no_multiple_of_the_lanes() {
        for len in [0, 1, 15, 16, 17, 100] {
            let a: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let expected: f32 = a.iter().map(|x| x * x).sum();
            assert_eq!(dot(&a, &a), expected);
        }
    }
}
