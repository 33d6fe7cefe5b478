//! Random numbers and matrices for tests of kernels, and how close results must come.

#![allow(dead_code, reason = "each test binary uses its own part")]

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sterna::backend::cpu::CpuTensor;
use sterna::quant::{DenseEncoding, DenseMatrix, Int4Matrix, Int8Matrix, Matrix, Scales, TernaryMatrix};

pub struct Random(Pcg64Mcg);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Uniform in −1…1.
    pub fn float(&mut self) -> f32 {
        (self.0.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.float()).collect()
    }

    pub fn codes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.0.next_u32() >> 20) as u8 & 3).collect()
    }

    pub fn tensor(&mut self, tokens: usize, width: usize) -> CpuTensor {
        CpuTensor::from_data(width, self.floats(tokens * width))
    }

    pub fn ternary(&mut self, rows: usize, cols: usize, scales: Scales) -> Matrix {
        let codes = self.codes(rows * cols);
        Matrix::Ternary(TernaryMatrix::from_codes(rows, cols, &codes, scales).unwrap())
    }

    pub fn dense(&mut self, rows: usize, cols: usize, encoding: DenseEncoding) -> Matrix {
        let mut matrix = DenseMatrix::zeroed(rows, cols, encoding).unwrap();
        encoding.encode(&self.floats(rows * cols), matrix.bytes_mut());
        Matrix::Dense(matrix)
    }

    pub fn int4(&mut self, rows: usize, cols: usize) -> Int4Matrix {
        let mut matrix = Int4Matrix::unfilled(rows, cols).unwrap();
        for row in 0..rows {
            matrix.put_row(row, &self.floats(cols)).unwrap();
        }
        matrix
    }

    pub fn int8(&mut self, rows: usize, cols: usize) -> Int8Matrix {
        let mut matrix = Int8Matrix::unfilled(rows, cols).unwrap();
        for row in 0..rows {
            matrix.put_row(row, &self.floats(cols)).unwrap();
        }
        matrix
    }

    /// One of each granularity.
    pub fn all_scales(&mut self, rows: usize, cols: usize) -> Vec<Scales> {
        let mut scales = vec![Scales::Tensor(0.37), Scales::Row(self.floats(rows))];
        for size in [16, 64, 128, 256] {
            scales.push(Scales::Group { size, values: self.floats(rows * cols.div_ceil(size)) });
        }
        scales
    }
}

/// Compares with a tolerance relative to the size that the sum's terms have.
pub fn assert_close(ours: &[f32], wanted: &[f32], tolerance: f32, what: &str) {
    assert_eq!(ours.len(), wanted.len());
    let size = wanted.iter().fold(1e-3f32, |max, x| max.max(x.abs()));
    for (index, (ours, wanted)) in ours.iter().zip(wanted).enumerate() {
        assert!((ours - wanted).abs() <= tolerance * size, "{what} [{index}]: {ours} instead of {wanted}");
    }
}
