//! Which instructions stand behind `i32x4.relaxed_dot_i8x16_i7x16_add` in this engine, on this machine.
//!
//! One instruction where there is AVX-VNNI or Arm's `sdot`, which nothing beats; three on other x86, where
//! `i16x8.relaxed_dot_i8x16_i7x16_s` is one of the three and summing its 16-bit results first saves the
//! others. WebAssembly does not tell, but the operation's result is left open where the second operand's
//! top bit is set, and each lowering has its own.

use std::arch::wasm32::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const ONE_INSTRUCTION: u8 = 1;
const SEVERAL: u8 = 2;

static LOWERING: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether sums of 16 bits are the faster ones.
#[inline(always)]
pub fn sums_in_16_bits() -> bool {
    match LOWERING.load(Ordering::Relaxed) {
        UNKNOWN => probe(),
        known => known == SEVERAL,
    }
}

#[cold]
fn probe() -> bool {
    // Pairs of products are 2 · 127 · 255 where the second operand is unsigned and 2 · 127 · −1 where it is
    // signed; the former do not fit 16 bits, and saturate in the lowering of several instructions.
    const SATURATED: i32 = 2 * i16::MAX as i32;
    let (x, codes) = (black_box(i8x16_splat(127)), black_box(u8x16_splat(255)));
    let sums = i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, i32x4_splat(0));
    let several = i32x4_extract_lane::<0>(sums) == SATURATED;
    LOWERING.store(if several { SEVERAL } else { ONE_INSTRUCTION }, Ordering::Relaxed);
    several
}
