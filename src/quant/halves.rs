//! IEEE half precision in integer and float arithmetic without branches, which the compiler vectorises:
//! WebAssembly has no instruction for it.

/// A half's bits moved into a single's places are the half times this much too small, since the exponent
/// keeps the half's bias.
pub const REBIAS: f32 = 5.192_297e33; // 2¹¹²

/// The largest finite half.
pub const MAX: f32 = 65_504.0;

const EXPONENT: u16 = 0x7c00;

/// Where a single has what a half tells: the sign, the exponent's lower bits, the mantissa's upper ones.
pub const PLACES: u32 = 0x8fff_e000;

/// Sign, exponent and mantissa of a half in a single's places.
#[inline(always)]
pub fn place(half: u16) -> u32 {
    // The sign is extended: of its copies the top one is kept.
    ((i32::from(half as i16) << 13) as u32) & PLACES
}

/// A half without its sign. The halves without signs are in the order of their bits, NaN at the end.
#[inline(always)]
pub fn magnitude(half: u16) -> u16 {
    half & 0x7fff
}

/// Half → single, of a half that is finite.
#[inline(always)]
pub fn finite_to_single(half: u16) -> f32 {
    f32::from_bits(place(half)) * REBIAS
}

/// Half → single.
#[inline(always)]
pub fn to_single(half: u16) -> f32 {
    let value = finite_to_single(half);
    let is_finite = half & EXPONENT != EXPONENT;
    if is_finite { value } else { f32::from_bits(place(half) | 0x7f80_0000) }
}

/// Single → half, rounding half to even; too large becomes infinity.
#[inline(always)]
pub fn from_single(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Adding half an ulp less one, plus the lowest kept bit, rounds half to even.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    // Adding 0.5 lets the float unit align and round a subnormal's mantissa.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < (113 << 23) { subnormal } else { normal };
    let half = if magnitude >= (143 << 23) { u32::from(EXPONENT) } else { finite };
    let half = if magnitude > (255 << 23) { 0x7e00 } else { half };
    (sign | half) as u16
}

/// Singles of halves that are all finite.
pub fn decode_finite(halves: &[u16], out: &mut [f32]) {
    for (value, half) in out.iter_mut().zip(halves) {
        *value = finite_to_single(*half);
    }
}

/// Halves of singles; what is too large becomes the largest half, NaN becomes zero.
pub fn encode_finite(values: &[f32], out: &mut [u16]) {
    for (half, value) in out.iter_mut().zip(values) {
        let at_least = if *value > -MAX { *value } else { -MAX };
        let within = if at_least < MAX { at_least } else { MAX };
        *half = from_single(if value.is_nan() { 0.0 } else { within });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn every_half_converts_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (to_single(bits), f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
            let mut finite = [0.0];
            decode_finite(&[bits], &mut finite);
            assert!(finite[0].to_bits() == ours.to_bits() || !ours.is_finite(), "{bits:#x}");
        }
    }

    #[test]
    fn singles_round_as_the_half_crate_does() {
        for step in 0..2_000_000u32 {
            let value = f32::from_bits(step.wrapping_mul(2147).wrapping_add(step << 11));
            let (ours, theirs) = (from_single(value), f16::from_f32(value));
            assert!(ours == theirs.to_bits() || value.is_nan() && theirs.is_nan(), "{value:e} {ours:#x}");
        }
    }

    #[test]
    fn what_is_not_finite_becomes_finite() {
        let mut halves = [0; 5];
        encode_finite(&[f32::INFINITY, -1e9, f32::NAN, 65_519.0, 1.5], &mut halves);
        assert_eq!(halves.map(to_single), [MAX, -MAX, 0.0, MAX, 1.5]);
    }
}
