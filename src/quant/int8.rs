//! Dense weights rounded to eight bits with one scale a row: what a large embedding and LM head are kept
//! as when the load option `embedding` says so. Rounding to nearest at the row's largest weight leaves a
//! relative error of about 0.8 % a weight, which averages out in a product.

use super::rounding::{largest_magnitude, round_small};
use super::{half_rows, halves, try_reserved, try_zeroed};
use crate::Result;
use crate::error::corrupt;
use bytemuck::Zeroable;

/// Rows are padded to whole cache lines.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([i8; LINE]);

const LINE: usize = 64;

/// A row-major `[rows, cols]` matrix of signed bytes; `weight = byte · scale(row)`.
#[derive(Debug, Clone)]
pub struct Int8Matrix {
    rows: usize,
    cols: usize,
    data: Vec<Line>,
    scales: Vec<f32>,
    sums: Vec<i32>,
}

impl Int8Matrix {
    /// An unfilled matrix; every row must be [put](Self::put_row).
    ///
    /// # Errors
    /// `out_of_memory`.
    pub fn unfilled(rows: usize, cols: usize) -> Result<Self> {
        Ok(Self {
            rows,
            cols,
            data: try_reserved(rows.saturating_mul(cols.div_ceil(LINE)), "8-bit weights")?,
            scales: try_zeroed(rows, "weight scales")?,
            sums: try_zeroed(rows, "weight sums")?,
        })
    }

    /// Rounds a row.
    ///
    /// # Errors
    /// `corrupt_file` when a weight is NaN or infinite.
    pub fn put_row(&mut self, row: usize, weights: &[f32]) -> Result<()> {
        assert_eq!(weights.len(), self.cols);
        self.round_row(row, largest_magnitude(weights), |inverse, bytes| {
            let mut sum = 0;
            for (byte, weight) in bytes.iter_mut().zip(weights) {
                let rounded = round_small(weight * inverse);
                *byte = rounded as i8;
                sum += rounded;
            }
            sum
        })
    }

    /// Rounds a row of little-endian halves, without making singles of them first: as [`Self::put_row`], but faster.
    ///
    /// # Errors
    /// As [`Self::put_row`].
    pub fn put_half_row(&mut self, row: usize, halves: &[u8]) -> Result<()> {
        let halves = halves.as_chunks::<2>().0;
        assert_eq!(halves.len(), self.cols);
        let max = halves::to_single(half_rows::largest_magnitude(halves));
        self.round_row(row, max, |inverse, bytes| half_rows::round(halves, inverse, bytes))
    }

    /// Rounds a row whose largest weight has the magnitude `max`. `round` fills the bytes from the weights times a
    /// factor, and gives their sum.
    fn round_row(&mut self, row: usize, max: f32, round: impl FnOnce(f32, &mut [i8]) -> i32) -> Result<()> {
        if !max.is_finite() {
            return Err(corrupt!("a weight of row {row} is not a finite number"));
        }
        let scale = max / 127.0;
        // A scale so small that its inverse overflows: the row is as good as zero.
        let inverse = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
        self.scales[row] = scale;
        let lines = self.cols.div_ceil(LINE);
        if self.data.len() < (row + 1) * lines {
            self.data.resize((row + 1) * lines, Line::zeroed());
        }
        let bytes: &mut [i8] = bytemuck::cast_slice_mut(&mut self.data[row * lines..(row + 1) * lines]);
        self.sums[row] = round(inverse, &mut bytes[..self.cols]);
        Ok(())
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Columns including padding, whose bytes are zero.
    pub fn padded_cols(&self) -> usize {
        padded_cols(self.cols)
    }

    /// The bytes of one row, padding included.
    pub fn row(&self, row: usize) -> &[i8] {
        let lines = self.cols.div_ceil(LINE);
        bytemuck::cast_slice(&self.data[row * lines..(row + 1) * lines])
    }

    /// The bytes of all rows, padding included.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.data)
    }

    pub fn scale(&self, row: usize) -> f32 {
        self.scales[row]
    }

    /// The sum of a row's bytes.
    pub fn sum(&self, row: usize) -> i32 {
        self.sums[row]
    }

    /// Multiplies every weight by `factor`.
    pub fn multiply(&mut self, factor: f32) {
        self.scales.iter_mut().for_each(|scale| *scale *= factor);
    }

    /// Bytes kept resident.
    pub fn resident_bytes(&self) -> usize {
        resident_bytes(self.rows as u64, self.cols) as usize
    }

    /// Decodes one row to `f32`; `out.len() == cols`.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        for (value, byte) in out.iter_mut().zip(self.row(row)) {
            *value = f32::from(*byte) * self.scales[row];
        }
    }
}

fn padded_cols(cols: usize) -> usize {
    cols.next_multiple_of(LINE)
}

/// Bytes that a matrix of this shape keeps resident.
pub fn resident_bytes(rows: u64, cols: usize) -> u64 {
    rows.saturating_mul(padded_cols(cols) as u64 + (size_of::<f32>() + size_of::<i32>()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_come_back_within_half_a_step() {
        let weights: Vec<f32> = (0..100).map(|i| ((i * 37 % 100) as f32 - 50.0) / 7.0).collect();
        let mut matrix = Int8Matrix::unfilled(2, 100).unwrap();
        matrix.put_row(1, &weights).unwrap();
        let mut back = vec![0.0; 100];
        matrix.decode_row(1, &mut back);
        let step = 50.0 / 7.0 / 127.0;
        assert!(back.iter().zip(&weights).all(|(ours, weight)| (ours - weight).abs() <= step * 0.501));
        assert_eq!(matrix.sum(1), matrix.row(1).iter().map(|byte| i32::from(*byte)).sum::<i32>());
    }

    #[test]
    fn tiny_rows_are_zero_and_nan_is_refused() {
        let mut matrix = Int8Matrix::unfilled(1, 2).unwrap();
        matrix.put_row(0, &[1e-44, 0.0]).unwrap();
        assert_eq!(matrix.row(0)[..2], [0, 0]);
        assert_eq!(matrix.put_row(0, &[f32::NAN, 0.0]).unwrap_err().code(), "corrupt_file");
    }
}
