//! How the SIMD kernels walk the bytes of a group, whatever they do with a step of it.

use super::dot::{Chunk, GroupBytes, RowSums, RunPlanes, STEP_BYTES};
use crate::quant::ternary::{CHUNK_COLS, STREAMS};
use std::arch::wasm32::{v128, v128_load};

/// Sums under way that must be put in order now and then.
pub trait Settling {
    /// So many steps fit between two calls of [`Self::settle`]; a multiple of [`STREAMS`].
    const STEPS: usize = 1 << 30;

    #[inline(always)]
    fn settle(&mut self) {}
}

/// The sums of eight rows under way.
pub trait GroupSums: Settling {
    fn zero() -> Self;

    /// Adds 16 columns.
    ///
    /// # Safety
    /// [`STEP_BYTES`] at `weights` must be readable.
    unsafe fn step(&mut self, weights: *const u8, x: &Chunk);

    /// The sums, once settled.
    fn finish(self) -> RowSums;
}

/// Sums over all four streams in lock step, so that four addresses are read at once.
#[inline(always)]
pub fn sum_streams<S: GroupSums>(weights: GroupBytes<'_>, x: &[Chunk]) -> RowSums {
    let steps = weights[0].len() / STEP_BYTES;
    assert!(weights.iter().all(|w| w.len() == steps * STEP_BYTES) && x.len() == steps * STREAMS);
    let mut sums = S::zero();
    let mut weights = weights.map(<[u8]>::as_ptr);
    for x in x.chunks(S::STEPS) {
        let std::ops::Range { start: mut x, end } = x.as_ptr_range();
        // Asking after every stream, though only the fourth can be the last, keeps the compiler from taking
        // the four together, for which there are not enough registers.
        'steps: while x != end {
            for weights in &mut weights {
                // SAFETY: every stream has 32 bytes a step and `x` a chunk a stream and step (asserted).
                unsafe {
                    sums.step(*weights, &*x);
                    *weights = weights.add(STEP_BYTES);
                    x = x.add(1);
                }
                if x == end {
                    break 'steps;
                }
            }
        }
        sums.settle();
    }
    sums.finish()
}

/// Calls `step` with the address of each step of a run and of its chunk in the first of `planes` planes.
#[inline(always)]
pub fn for_steps(
    weights: &[u8],
    x: RunPlanes<'_>,
    planes: usize,
    mut step: impl FnMut(*const u8, *const Chunk),
) {
    let steps = weights.len() / STEP_BYTES;
    assert!(x.chunks.len() + STREAMS > (planes - 1) * x.stride + steps * STREAMS);
    let mut weights = weights.as_ptr();
    let mut x = x.chunks.as_ptr();
    for _ in 0..steps {
        step(weights, x);
        weights = weights.wrapping_add(STEP_BYTES);
        x = x.wrapping_add(STREAMS);
    }
}

/// The codes of half of the rows of a step.
///
/// # Safety
/// [`STEP_BYTES`] at `weights` must be readable.
#[inline(always)]
pub unsafe fn load_half(weights: *const u8, half: usize) -> v128 {
    // SAFETY: the caller vouches for both halves.
    unsafe { v128_load(weights.add(half * CHUNK_COLS).cast()) }
}
