//! Weight encodings. Every file format ends here, in one of two forms that the backends run:
//! [`TernaryMatrix`] (2-bit codes in the kernels' own order) or [`DenseMatrix`] (rows in the file's
//! own encoding).

pub mod dense;
pub mod ternary;

pub use dense::{DenseEncoding, DenseMatrix};
pub use ternary::{Scales, TernaryMatrix};

/// A weight matrix `[rows = out, cols = in]` as the backends receive it.
#[derive(Debug, Clone)]
pub enum Matrix {
    Ternary(TernaryMatrix),
    Dense(DenseMatrix),
}

impl Matrix {
    /// Output width.
    pub fn rows(&self) -> usize {
        match self {
            Matrix::Ternary(m) => m.rows(),
            Matrix::Dense(m) => m.rows(),
        }
    }

    /// Input width.
    pub fn cols(&self) -> usize {
        match self {
            Matrix::Ternary(m) => m.cols(),
            Matrix::Dense(m) => m.cols(),
        }
    }

    /// Bytes that the matrix keeps resident, scales included.
    pub fn resident_bytes(&self) -> usize {
        match self {
            Matrix::Ternary(m) => m.resident_bytes(),
            Matrix::Dense(m) => m.resident_bytes(),
        }
    }

    /// Decodes one row to `f32`; `out.len() == cols`.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        match self {
            Matrix::Ternary(m) => m.decode_row(row, out),
            Matrix::Dense(m) => m.decode_row(row, out),
        }
    }
}

/// Allocates `len` zeroed elements, or reports how much was asked for.
pub(crate) fn try_zeroed<T: bytemuck::Zeroable + Clone>(len: usize, what: &str) -> crate::Result<Vec<T>> {
    let bytes = len.saturating_mul(size_of::<T>());
    let layout = std::alloc::Layout::array::<T>(len).map_err(|_| out_of_memory(bytes, what))?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // `vec![zeroed; len]` aborts on failure and `try_reserve` + `resize` touches every page; a zeroed
    // allocation does neither, which matters for matrices of hundreds of megabytes.
    // SAFETY: the layout is the one `Vec<T>` uses for `len` elements, it is not empty, and all-zero
    // bytes are a valid `T` (`Zeroable`).
    unsafe {
        let data = std::alloc::alloc_zeroed(layout);
        if data.is_null() {
            return Err(out_of_memory(bytes, what));
        }
        Ok(Vec::from_raw_parts(data.cast::<T>(), len, len))
    }
}

fn out_of_memory(bytes: usize, what: &str) -> crate::Error {
    crate::Error::OutOfMemory(format!(
        "could not allocate {:.1} MB for {what}: close other tabs, choose a smaller model, or ask for a \
         shorter contextLength",
        bytes as f64 / 1e6
    ))
}
