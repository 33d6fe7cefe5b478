//! Rows of halves, as most files keep their embedding, to bytes: the loop that loading a model spends most time in.
//! What the compiler makes of the plain definition for WebAssembly fills a quarter of each vector.

#[cfg(not(target_feature = "simd128"))]
pub(super) use plain::{largest_magnitude, round};
#[cfg(target_feature = "simd128")]
pub(super) use simd128::{largest_magnitude, round};

#[cfg(not(target_feature = "simd128"))]
mod plain {
    use super::super::halves::{finite_to_single, magnitude};
    use super::super::rounding::round_small;

    /// The largest magnitude among little-endian halves, as a half; not finite when one of them is not.
    pub fn largest_magnitude(halves: &[[u8; 2]]) -> u16 {
        halves.iter().map(|half| magnitude(u16::from_le_bytes(*half))).max().unwrap_or(0)
    }

    /// Rounds finite little-endian halves times `inverse`, which are bytes then, and returns their sum.
    pub fn round(halves: &[[u8; 2]], inverse: f32, bytes: &mut [i8]) -> i32 {
        let mut sum = 0;
        for (byte, half) in bytes.iter_mut().zip(halves) {
            let rounded = round_small(finite_to_single(u16::from_le_bytes(*half)) * inverse);
            *byte = rounded as i8;
            sum += rounded;
        }
        sum
    }
}

#[cfg(target_feature = "simd128")]
mod simd128 {
    use super::super::halves::{PLACES, REBIAS, finite_to_single, magnitude};
    use super::super::rounding::{WHOLE, round_small};
    use core::arch::wasm32::*;

    /// Halves of a step: their bytes fill a vector.
    const STEP: usize = 16;

    fn load(step: &[[u8; 2]; STEP]) -> [v128; 2] {
        let vectors: *const v128 = step.as_ptr().cast();
        // SAFETY: a step is two vectors, and loads need no alignment.
        unsafe { [v128_load(vectors), v128_load(vectors.add(1))] }
    }

    /// As the plain definition.
    pub fn largest_magnitude(halves: &[[u8; 2]]) -> u16 {
        let (steps, rest) = halves.as_chunks::<STEP>();
        let mut largest = u16x8_splat(0);
        for step in steps {
            let [low, high] = load(step).map(|halves| v128_and(halves, u16x8_splat(0x7fff)));
            largest = u16x8_max(largest, u16x8_max(low, high));
        }
        // SAFETY: both have 16 bytes, any of which are numbers.
        let lanes: [u16; 8] = unsafe { core::mem::transmute(largest) };
        let rest = rest.iter().map(|half| magnitude(u16::from_le_bytes(*half)));
        lanes.into_iter().chain(rest).max().unwrap_or(0)
    }

    /// As the plain definition.
    pub fn round(halves: &[[u8; 2]], inverse: f32, bytes: &mut [i8]) -> i32 {
        let (steps, rest) = halves.as_chunks::<STEP>();
        let (whole, last) = bytes.split_at_mut(steps.len() * STEP);
        let factor = f32x4_splat(inverse);
        let round = |half: v128| {
            let single = f32x4_mul(v128_and(i32x4_shl(half, 13), u32x4_splat(PLACES)), f32x4_splat(REBIAS));
            let beside_whole = f32x4_add(f32x4_mul(single, factor), f32x4_splat(WHOLE));
            i32x4_sub(beside_whole, u32x4_splat(WHOLE.to_bits()))
        };
        let mut sums = i32x4_splat(0);
        for (bytes, step) in whole.as_chunks_mut::<STEP>().0.iter_mut().zip(steps) {
            let [low, high] = load(step).map(|halves| {
                let (low, high) = (i32x4_extend_low_i16x8(halves), i32x4_extend_high_i16x8(halves));
                i16x8_narrow_i32x4(round(low), round(high))
            });
            let ones = i16x8_splat(1);
            sums = i32x4_add(sums, i32x4_add(i32x4_dot_i16x8(low, ones), i32x4_dot_i16x8(high, ones)));
            // SAFETY: a step's bytes are one vector, and stores need no alignment.
            unsafe { v128_store(bytes.as_mut_ptr().cast(), i8x16_narrow_i16x8(low, high)) };
        }
        let lanes = [
            i32x4_extract_lane::<0>(sums),
            i32x4_extract_lane::<1>(sums),
            i32x4_extract_lane::<2>(sums),
            i32x4_extract_lane::<3>(sums),
        ];
        let mut sum = lanes.iter().sum();
        for (byte, half) in last.iter_mut().zip(rest) {
            let rounded = round_small(finite_to_single(u16::from_le_bytes(*half)) * inverse);
            *byte = rounded as i8;
            sum += rounded;
        }
        sum
    }
}
