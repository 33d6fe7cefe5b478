//! Memory that is needed soon. WebAssembly has no instruction to prefetch, but loads whose result nobody waits for
//! do it: while some keys or values are computed with, the next ones come.

/// Bytes that memory is read in.
const LINE: usize = 64;
/// Places of the bytes that are read side by side: processors run ahead of a reader within a page only, and
/// wait for the first lines of several pages at once.
const STREAMS: usize = 4;

/// Bytes that are touched in steps.
pub struct Ahead<'a> {
    bytes: &'a [u8],
    lines_a_step: usize,
}

impl<'a> Ahead<'a> {
    pub fn new(bytes: &'a [u8], steps: usize) -> Self {
        Self { bytes, lines_a_step: bytes.len().div_ceil(LINE * STREAMS * steps.max(1)) }
    }

    // A function of its own: its caller has no registers to spare.
    #[inline(never)]
    pub fn touch(&self, step: usize) {
        let stream = self.bytes.len() / STREAMS;
        for line in step * self.lines_a_step..(step + 1) * self.lines_a_step {
            for start in (0..STREAMS).map(|index| index * stream) {
                if let Some(byte) = self.bytes.get(start + line * LINE) {
                    // SAFETY: a reference is readable.
                    unsafe { std::ptr::read_volatile(byte) };
                }
            }
        }
    }
}
