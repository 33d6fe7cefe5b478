//! What rounding a row of floats to few bits takes, in operations that the compiler turns into vectors: a float's
//! own maximum and rounding it leaves scalar.

/// 1.5 · 2²³: the floats beside it are whole numbers, so that adding it rounds to one, half to even.
pub(crate) const WHOLE: f32 = 12_582_912.0;

/// Rounds to the nearest whole number, half to even. `value` is less than 2²² in magnitude; what is not, or is NaN,
/// becomes any number.
#[inline(always)]
pub(crate) fn round_small(value: f32) -> i32 {
    (value + WHOLE).to_bits() as i32 - WHOLE.to_bits() as i32
}

/// The largest magnitude, 0 of none; not finite when a value is not.
pub(super) fn largest_magnitude(values: &[f32]) -> f32 {
    // The bits of floats without signs are in the order of the floats, NaN at the end.
    f32::from_bits(values.iter().fold(0, |max, value| max.max(value.abs().to_bits())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_round_as_floats_do() {
        for step in -4_000..4_000 {
            for value in [step as f32 / 16.0, step as f32 / 7.0, step as f32 / 2.0] {
                for value in [value, value.next_up(), value.next_down()] {
                    assert_eq!(round_small(value), value.round_ties_even() as i32, "{value}");
                }
            }
        }
    }

    #[test]
    fn the_largest_magnitude_shows_what_is_not_finite() {
        assert_eq!(largest_magnitude(&[]), 0.0);
        assert_eq!(largest_magnitude(&[-0.0, 1e-40]), 1e-40);
        assert_eq!(largest_magnitude(&[1.0, -3.5, 2.0]), 3.5);
        for odd in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!largest_magnitude(&[1.0, odd, 2.0]).is_finite());
        }
    }
}
