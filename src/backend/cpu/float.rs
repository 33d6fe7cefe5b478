//! Float helpers written so that the compiler vectorises them: a dot product with independent
//! accumulators and branch-free half-precision conversions.

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

/// `out += scale · x`
pub fn add_scaled(out: &mut [f32], scale: f32, x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += scale * x;
    }
}

/// The largest value; `-∞` of nothing. (`f32::max` is a function call in WebAssembly, where its treatment
/// of NaN is not the instruction's.)
pub fn maximum(values: &[f32]) -> f32 {
    values.iter().fold(f32::NEG_INFINITY, |max, value| if *value > max { *value } else { max })
}

/// `eˣ` for `x ≤ 88`, correct to the last bit of an `f32`, without branches or a library call: the same
/// value natively and in WebAssembly, where it also vectorises.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding 1.5 · 2⁵² to a double leaves its integer part, rounded, in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
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

/// IEEE half → single, without branches.
#[inline(always)]
pub fn f16_to_f32(half: u16) -> f32 {
    let half = u32::from(half);
    let sign = (half & 0x8000) << 16;
    let shifted = (half & 0x7fff) << 13;
    let exponent = half & 0x7c00;
    // Re-bias the exponent from 15 to 127; infinities and NaNs need it twice.
    let normal = shifted + ((127 - 15) << 23) + if exponent == 0x7c00 { (127 - 15) << 23 } else { 0 };
    // A subnormal is what remains of 2⁻¹⁴ + x after 2⁻¹⁴ is taken away again.
    let smallest_normal = f32::from_bits(113 << 23);
    let subnormal = (f32::from_bits(shifted + (113 << 23)) - smallest_normal).to_bits();
    f32::from_bits(sign | if exponent == 0 { subnormal } else { normal })
}

/// Single → IEEE half, rounding half to even; too large becomes infinity.
#[inline(always)]
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Adding half an ulp less one, plus the lowest kept bit, rounds half to even.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    // Adding 0.5 lets the float unit align and round a subnormal's mantissa.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < (113 << 23) { subnormal } else { normal };
    let half = if magnitude >= (143 << 23) { 0x7c00 } else { finite };
    let half = if magnitude > (255 << 23) { 0x7e00 } else { half };
    (sign | half) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn every_half_converts_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits), f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
        }
    }

    #[test]
    fn singles_round_as_the_half_crate_does() {
        for step in 0..2_000_000u32 {
            let value = f32::from_bits(step.wrapping_mul(2147).wrapping_add(step << 11));
            let (ours, theirs) = (f32_to_f16(value), f16::from_f32(value));
            assert!(ours == theirs.to_bits() || value.is_nan() && theirs.is_nan(), "{value:e} {ours:#x}");
        }
    }

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
