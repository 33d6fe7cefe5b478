//! How the SIMD kernels walk the bytes of a group, whatever they do with a step of it.

use super::dot::{Chunk, FLOAT_PLANES, GroupBytes, PlaneSums, RowSums, STEP_BYTES};
use crate::quant::ternary::{CHUNK_COLS, STREAMS};

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

/// Sums over the steps of one stream; `x` starts at the stream's first step.
// A function of its own: engines allocate registers worse where a caller holds several of these loops.
#[inline(never)]
pub fn sum_stream<S: GroupSums>(weights: &[u8], x: &[Chunk]) -> RowSums {
    let mut sums = S::zero();
    let steps = weights.as_chunks::<STEP_BYTES>().0;
    for (steps, x) in steps.chunks(S::STEPS).zip(x.chunks(S::STEPS.saturating_mul(STREAMS))) {
        for (bytes, x) in steps.iter().zip(x.iter().step_by(STREAMS)) {
            // SAFETY: `bytes` is one step.
            unsafe { sums.step(bytes.as_ptr(), x) };
        }
        sums.settle();
    }
    sums.finish()
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

/// The sums of four rows under way, with all planes of a float activation: the registers hold as many sums
/// as in [`GroupSums`], and a row's codes are taken out of their bytes once for all planes.
pub trait PlanesSums: Settling {
    fn zero() -> Self;

    /// Adds 16 columns.
    ///
    /// # Safety
    /// Half of [`STEP_BYTES`] at `weights` must be readable.
    unsafe fn step(&mut self, weights: *const u8, x: [&Chunk; FLOAT_PLANES]);

    /// The sums, once settled.
    fn finish(self) -> [[i32; 4]; FLOAT_PLANES];
}

/// [`sum_stream`] for the planes of a float activation.
// A function of its own: engines allocate registers worse where a caller holds several of these loops.
#[inline(never)]
pub fn sum_stream_planes<S: PlanesSums>(weights: &[u8], x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    let halves = [0, CHUNK_COLS].map(|half| {
        let mut sums = S::zero();
        let mut at = 0;
        for steps in weights.as_chunks::<STEP_BYTES>().0.chunks(S::STEPS) {
            for bytes in steps {
                // SAFETY: `bytes` is one step, and `half` the start of one of its halves.
                unsafe { sums.step(bytes.as_ptr().add(half), x.map(|x| &x[at])) };
                at += STREAMS;
            }
            sums.settle();
        }
        sums.finish()
    });
    join(halves)
}

/// [`sum_streams`] for the planes of a float activation.
// A function of its own: engines allocate registers worse where a caller holds several of these loops.
#[inline(never)]
pub fn sum_streams_planes<S: PlanesSums>(weights: GroupBytes<'_>, x: [&[Chunk]; FLOAT_PLANES]) -> PlaneSums {
    let steps = weights[0].len() / STEP_BYTES;
    assert!(weights.iter().all(|w| w.len() == steps * STEP_BYTES));
    assert!(x.iter().all(|x| x.len() == steps * STREAMS));
    let halves = [0, CHUNK_COLS].map(|half| {
        let mut sums = S::zero();
        let mut weights = weights.map(|stream| stream.as_ptr().wrapping_add(half));
        for first in (0..x[0].len()).step_by(S::STEPS) {
            let mut x = x.map(|x| x[first..x.len().min(first + S::STEPS)].as_ptr_range());
            let end = x[0].end;
            'steps: while x[0].start != end {
                for weights in &mut weights {
                    // SAFETY: every stream has 32 bytes a step and every plane a chunk a stream and step
                    // (asserted).
                    unsafe {
                        sums.step(*weights, x.each_ref().map(|x| &*x.start));
                        *weights = weights.wrapping_add(STEP_BYTES);
                        for x in &mut x {
                            x.start = x.start.add(1);
                        }
                    }
                    if x[0].start == end {
                        break 'steps;
                    }
                }
            }
            sums.settle();
        }
        sums.finish()
    });
    join(halves)
}

fn join(halves: [[[i32; 4]; FLOAT_PLANES]; 2]) -> PlaneSums {
    std::array::from_fn(|plane| std::array::from_fn(|row| halves[row / 4][plane][row % 4]))
}
