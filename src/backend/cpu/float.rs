//! Float helpers written so that the compiler vectorises them: a dot product with independent
//! accumulators, an exponential without branches.

/// Adding 1.5 · 2⁵² to a double leaves its integer part, rounded, in the low bits.
pub const ROUND: f64 = 6_755_399_441_055_744.0;

/// Accumulators of [`dot`]: four SIMD128 registers.
const LANES: usize = 16;

/// `Σ a·b`
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
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

/// The largest value; `-∞` of nothing. (`f32::max` is a function call in WebAssembly, where its treatment
/// of NaN is not the instruction's.)
pub fn maximum(values: &[f32]) -> f32 {
    let larger = |max: f32, value: &f32| if *value > max { *value } else { max };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = larger(*lane, value));
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, larger)
}

/// The largest magnitude; 0 of nothing, and NaN is passed over.
pub fn largest(values: &[f32]) -> f32 {
    let larger = |max: f32, x: &f32| if x.abs() > max { x.abs() } else { max };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane = larger(*lane, x));
    }
    lanes.iter().chain(rest).fold(0.0, larger)
}

/// Exponentials of how far each value is below the largest, divided by their sum, which is in double precision.
pub fn softmax(scores: &mut [f32]) {
    let max = maximum(scores);
    let mut lanes = [0.0f64; LANES];
    let (chunks, rest) = scores.as_chunks_mut::<LANES>();
    for chunk in chunks {
        *chunk = chunk.map(|score| exp(score - max));
        lanes.iter_mut().zip(chunk).for_each(|(lane, score)| *lane += f64::from(*score));
    }
    rest.iter_mut().for_each(|score| *score = exp(*score - max));
    let sum = lanes.iter().sum::<f64>() + rest.iter().map(|score| f64::from(*score)).sum::<f64>();
    let inverse = 1.0 / sum;
    scores.iter_mut().for_each(|score| *score = (f64::from(*score) * inverse) as f32);
}

/// `eˣ` for `x ≤ 88`, correct to the last bit of an `f32`, without branches or a library call: the same
/// value natively and in WebAssembly, where it also vectorises.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Below this the result is zero in single precision.
    let x = f64::from(if x > -104.0 { x } else { -104.0 });
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let rest = x - (shifted - ROUND) * std::f64::consts::LN_2;
    // Taylor's series to the ninth power on |rest| ≤ ln 2 / 2: the remainder is below 1e-11.
    let mut sum = 1.0 / 362_880.0;
    for coefficient in
        [1.0 / 40_320.0, 1.0 / 5_040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0]
    {
        sum = sum * rest + coefficient;
    }
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    (sum * power) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_that_of_double_precision() {
        for step in -110_000..=88_000 {
            let x = step as f32 / 1000.0;
            let wanted = f64::from(x).exp() as f32;
            assert!((exp(x) - wanted).abs() <= wanted * 6e-8, "{x}: {} {wanted}", exp(x));
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
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
