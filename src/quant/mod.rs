//! Weight encodings. Every file format ends here, in one of the forms that the backends run:
//! [`TernaryMatrix`] (2-bit codes in the kernels' own order), [`DenseMatrix`] (rows in the file's own
//! encoding), [`Int8Matrix`] or [`Int4Matrix`] (rows rounded while they are read).

pub mod absmean;
pub mod blocks;
pub mod dense;
pub mod fill;
mod half_rows;
pub mod halves;
pub mod hf_packed;
pub mod hidden;
pub mod i2_s;
pub mod int4;
pub mod int8;
pub mod mlx2;
pub mod ptq1_0;
pub mod q1_0;
pub mod q2_0;
pub mod q4_0;
pub mod q4_1;
pub mod q4_k;
pub mod q6_k;
pub mod q8_0;
pub(crate) mod rounding;
pub mod rows;
pub mod ternary;
pub mod tq1_0;
pub mod tq2_0;

pub use blocks::TernaryBlocks;
pub use dense::{DenseEncoding, DenseMatrix};
pub use fill::TernaryFill;
pub use i2_s::I2sLayout;
pub use int4::Int4Matrix;
pub use int8::Int8Matrix;
pub use rows::TernaryRows;
pub use ternary::{KernelScales, Scales, TernaryMatrix};

/// A weight matrix `[rows = out, cols = in]` as the backends receive it.
#[derive(Debug, Clone)]
pub enum Matrix {
    Ternary(TernaryMatrix),
    Dense(DenseMatrix),
    Int8(Int8Matrix),
    Int4(Int4Matrix),
}

impl Matrix {
    /// Output width.
    pub fn rows(&self) -> usize {
        match self {
            Matrix::Ternary(m) => m.rows(),
            Matrix::Dense(m) => m.rows(),
            Matrix::Int8(m) => m.rows(),
            Matrix::Int4(m) => m.rows(),
        }
    }

    /// Input width.
    pub fn cols(&self) -> usize {
        match self {
            Matrix::Ternary(m) => m.cols(),
            Matrix::Dense(m) => m.cols(),
            Matrix::Int8(m) => m.cols(),
            Matrix::Int4(m) => m.cols(),
        }
    }

    /// Bytes that the matrix keeps resident, scales included.
    pub fn resident_bytes(&self) -> usize {
        match self {
            Matrix::Ternary(m) => m.resident_bytes(),
            Matrix::Dense(m) => m.resident_bytes(),
            Matrix::Int8(m) => m.resident_bytes(),
            Matrix::Int4(m) => m.resident_bytes(),
        }
    }

    /// The matrix with every weight multiplied by `factor`. A dense matrix becomes `F32`, because its
    /// encoding may not hold the products.
    ///
    /// # Errors
    /// `out_of_memory` when the `F32` matrix cannot be allocated.
    pub fn scaled(self, factor: f32) -> crate::Result<Self> {
        match self {
            matrix if factor == 1.0 => Ok(matrix),
            Matrix::Ternary(mut matrix) => {
                matrix.multiply(factor);
                Ok(Matrix::Ternary(matrix))
            }
            Matrix::Dense(matrix) => Ok(Matrix::Dense(matrix.scaled(factor)?)),
            Matrix::Int8(mut matrix) => {
                matrix.multiply(factor);
                Ok(Matrix::Int8(matrix))
            }
            Matrix::Int4(mut matrix) => {
                matrix.multiply(factor);
                Ok(Matrix::Int4(matrix))
            }
        }
    }

    /// Decodes one row to `f32`; `out.len() == cols`.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        match self {
            Matrix::Ternary(m) => m.decode_row(row, out),
            Matrix::Dense(m) => m.decode_row(row, out),
            Matrix::Int8(m) => m.decode_row(row, out),
            Matrix::Int4(m) => m.decode_row(row, out),
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

/// Room for `len` elements, or a report of how much was asked for. What is filled with zeros just before it is
/// written, and not all at once, is still in the processor's cache then.
pub(crate) fn try_reserved<T>(len: usize, what: &str) -> crate::Result<Vec<T>> {
    let mut room = Vec::new();
    match room.try_reserve_exact(len) {
        Ok(()) => Ok(room),
        Err(_) => Err(out_of_memory(len.saturating_mul(size_of::<T>()), what)),
    }
}

fn out_of_memory(bytes: usize, what: &str) -> crate::Error {
    crate::Error::OutOfMemory(format!(
        "could not allocate {:.1} MB for {what}: close other tabs, choose a smaller model, or ask for a \
         shorter contextLength",
        bytes as f64 / 1e6
    ))
}
