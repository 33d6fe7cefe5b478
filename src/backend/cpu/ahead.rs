//! Memory that is needed soon. WebAssembly has no instruction to prefetch, but loads whose result nobody waits for
//! do it: while some keys or values are computed with, the next ones come; and many lines come at once where few would.

/// Bytes that memory is read in.
const LINE: usize = 64;
/// Places of the bytes that are read side by side: processors run ahead of a reader within a page only, and
/// wait for the first lines of several pages at once.
const STREAMS: usize = 4;

/// Lines of each place that are asked for at once: enough for the processor to see where a reader goes, and not more
/// than it keeps under way.
const BURST: usize = 4;

/// Bytes that are touched in steps.
pub struct Ahead<'a> {
    bytes: &'a [u8],
    bursts: usize,
    steps: usize,
}

impl<'a> Ahead<'a> {
    pub fn new(bytes: &'a [u8], steps: usize) -> Self {
        Self { bytes, bursts: bytes.len() / (LINE * STREAMS * BURST), steps }
    }

    #[inline(always)]
    pub fn touch(&self, step: usize) {
        let due = |step| step * self.bursts / self.steps;
        for burst in due(step)..due(step + 1) {
            self.touch_burst(burst);
        }
    }

    // A function of its own: its caller has no registers to spare.
    #[inline(never)]
    fn touch_burst(&self, burst: usize) {
        const BYTES: usize = BURST * LINE;
        for stream in self.bytes.chunks_exact(self.bytes.len() / STREAMS) {
            // What is left at a stream's end is small.
            let Some(bytes) = stream[burst * BYTES..].first_chunk::<BYTES>() else { return };
            for line in bytes.iter().step_by(LINE) {
                // SAFETY: a reference is readable.
                unsafe { std::ptr::read_volatile(line) };
            }
        }
    }
}
