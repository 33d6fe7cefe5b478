//! Dense weights rounded to four bits with a scale for each 32 columns: the smallest form in which a large
//! embedding and LM head can be kept (load option `embedding`). A group's scale is a byte times its row's
//! scale, 4.25 bits a weight in all, and is set so that the group's largest weight is a code's end; the
//! relative error is about 8 % a weight, which averages out in a product.
//!
//! Rows are kept in fours: a vector holds the same columns of each, one row a lane, so that a kernel's sums of four
//! rows meet their scales at once.

use super::rounding::{largest_magnitude, round_small};
use super::try_zeroed;
use crate::Result;
use crate::error::corrupt;
use std::ops::Range;

/// Columns that share a scale.
pub const GROUP: usize = 32;
/// Rows are padded to so many whole groups.
pub const BATCH: usize = 4;
/// Rows whose codes are interleaved.
pub const QUAD: usize = 4;

/// Bytes of a group: byte `i` holds column `i` in its low half and column `16 + i` in its high half.
const GROUP_BYTES: usize = GROUP / 2;
/// Bytes of a lane: of so many one row's are side by side.
const LANE_BYTES: usize = 4;
/// What is added to a rounded weight to make it a code.
const OFFSET: f32 = 8.0;
/// The largest code.
const MAX_CODE: f32 = 15.0;
/// Largest magnitude of a group's byte.
const MAX_STEP: f32 = 127.0;

/// A group of four rows, `[parts, rows, bytes of a part]`: a part is a lane of each row.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
pub struct QuadGroup(pub [[[u8; LANE_BYTES]; QUAD]; GROUP_BYTES / LANE_BYTES]);

/// A `[rows, cols]` matrix of half bytes; `weight = (code − 8) · step(row, group) · scale(row)`.
#[derive(Debug, Clone)]
pub struct Int4Matrix {
    rows: usize,
    cols: usize,
    /// `[quads of rows, groups]`, as are the steps.
    data: Vec<QuadGroup>,
    steps: Vec<[i8; QUAD]>,
    scales: Vec<f32>,
}

impl Int4Matrix {
    /// A matrix of zeros, to be filled with [`Self::put_row`].
    ///
    /// # Errors
    /// `out_of_memory`.
    pub fn unfilled(rows: usize, cols: usize) -> Result<Self> {
        let groups = rows.div_ceil(QUAD).saturating_mul(groups(cols));
        Ok(Self {
            rows,
            cols,
            data: try_zeroed(groups, "4-bit weights")?,
            steps: try_zeroed(groups, "weight scales")?,
            scales: try_zeroed(rows, "weight scales")?,
        })
    }

    /// Rounds a row.
    ///
    /// # Errors
    /// `corrupt_file` when a weight is NaN or infinite.
    pub fn put_row(&mut self, row: usize, weights: &[f32]) -> Result<()> {
        assert_eq!(weights.len(), self.cols);
        if !largest_magnitude(weights).is_finite() {
            return Err(corrupt!("a weight of row {row} is not a finite number"));
        }
        let wanted = weights.chunks(GROUP).map(wanted_scale);
        let max = wanted.clone().fold(0.0f32, |max, scale| max.max(scale.abs()));
        // A row so small that its inverse overflows is as good as zero.
        let scale = if max >= f32::MIN_POSITIVE * 256.0 { max / MAX_STEP } else { 0.0 };
        self.scales[row] = scale;
        let (quad, place) = (self.quad(row), row % QUAD);
        let groups = self.data[quad.clone()].iter_mut().zip(&mut self.steps[quad]);
        for ((weights, wanted), (group, steps)) in weights.chunks(GROUP).zip(wanted).zip(groups) {
            let step = if scale > 0.0 { (wanted / scale).round_ties_even() as i8 } else { 0 };
            steps[place] = step;
            let group_scale = f32::from(step) * scale;
            let inverse = if group_scale == 0.0 { 0.0 } else { 1.0 / group_scale };
            let codes = pack(weights, inverse);
            for (part, codes) in group.0.iter_mut().zip(codes.as_chunks::<LANE_BYTES>().0) {
                part[place] = *codes;
            }
        }
        Ok(())
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Columns including padding, whose steps are zero.
    pub fn padded_cols(&self) -> usize {
        groups(self.cols) * GROUP
    }

    /// The codes of one row, padding included, 16 bytes a group: byte `i` holds column `i` of its group in
    /// the low half and column `16 + i` in the high half.
    pub fn row(&self, row: usize) -> Vec<u8> {
        let groups = self.data[self.quad(row)].iter();
        groups.flat_map(|group| group.0.iter().flat_map(|part| part[row % QUAD])).collect()
    }

    /// The codes of all rows, padding included.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.data)
    }

    /// A step for each group of a row, padding included.
    pub fn steps(&self, row: usize) -> Vec<i8> {
        self.steps[self.quad(row)].iter().map(|steps| steps[row % QUAD]).collect()
    }

    /// The groups and steps of the four rows from `first`, a multiple of four, on; rows that the matrix lacks are zero.
    pub fn quad_rows(&self, first: usize) -> (&[QuadGroup], &[[i8; QUAD]]) {
        let quad = self.quad(first);
        (&self.data[quad.clone()], &self.steps[quad])
    }

    fn quad(&self, row: usize) -> Range<usize> {
        let (quad, groups) = (row / QUAD, groups(self.cols));
        quad * groups..(quad + 1) * groups
    }

    pub fn scale(&self, row: usize) -> f32 {
        self.scales[row]
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
        let (codes, steps) = (self.row(row), self.steps(row));
        let groups = codes.as_chunks::<GROUP_BYTES>().0.iter().zip(steps);
        for (out, (bytes, step)) in out.chunks_mut(GROUP).zip(groups) {
            let scale = f32::from(step) * self.scales[row];
            let codes = bytes.iter().map(|byte| byte & 15).chain(bytes.iter().map(|byte| byte >> 4));
            for (value, code) in out.iter_mut().zip(codes) {
                *value = (f32::from(code) - OFFSET) * scale;
            }
        }
    }
}

/// The scale at which a group's largest weight is the end of the codes that has the greater magnitude.
fn wanted_scale(weights: &[f32]) -> f32 {
    let magnitude = largest_magnitude(weights);
    let largest = weights.iter().find(|weight| weight.abs() == magnitude);
    -largest.copied().unwrap_or(0.0) / OFFSET
}

fn pack(weights: &[f32], inverse: f32) -> [u8; GROUP_BYTES] {
    let mut codes = [OFFSET as u8; GROUP];
    for (code, weight) in codes.iter_mut().zip(weights) {
        *code = round_small((weight * inverse + OFFSET).clamp(0.0, MAX_CODE)) as u8;
    }
    std::array::from_fn(|index| codes[index] | codes[GROUP_BYTES + index] << 4)
}

/// Groups of a row, padding included.
fn groups(cols: usize) -> usize {
    cols.div_ceil(GROUP).next_multiple_of(BATCH)
}

/// Bytes that a matrix of this shape keeps resident.
pub fn resident_bytes(rows: u64, cols: usize) -> u64 {
    let quad = groups(cols) * (size_of::<QuadGroup>() + QUAD);
    rows.div_ceil(QUAD as u64).saturating_mul(quad as u64) + rows * size_of::<f32>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_come_back_within_a_step_of_their_group() {
        for cols in [1, 31, 32, 100, 300] {
            let weights: Vec<f32> = (0..cols).map(|i| ((i * 37 % 100) as f32 - 50.0) / 7.0).collect();
            let mut matrix = Int4Matrix::unfilled(2, cols).unwrap();
            matrix.put_row(1, &weights).unwrap();
            let mut back = vec![0.0; cols];
            matrix.decode_row(1, &mut back);
            for (ours, weights) in back.chunks(GROUP).zip(weights.chunks(GROUP)) {
                let step = weights.iter().fold(0.0f32, |max, x| max.max(x.abs())) / 8.0;
                let close = |(ours, weight): (&f32, &f32)| (ours - weight).abs() <= step * 1.1;
                assert!(ours.iter().zip(weights).all(close), "{ours:?} {weights:?}");
            }
        }
    }

    #[test]
    fn a_group_of_small_weights_keeps_its_precision_beside_large_ones() {
        let weights: Vec<f32> = (0..64).map(|i| if i < 32 { 8.0 } else { (i - 48) as f32 / 16.0 }).collect();
        let mut matrix = Int4Matrix::unfilled(1, 64).unwrap();
        matrix.put_row(0, &weights).unwrap();
        let mut back = vec![0.0; 64];
        matrix.decode_row(0, &mut back);
        assert!(back.iter().zip(&weights).all(|(ours, weight)| (ours - weight).abs() < 0.1), "{back:?}");
    }

    #[test]
    fn tiny_rows_are_zero_and_nan_is_refused() {
        let mut matrix = Int4Matrix::unfilled(1, 2).unwrap();
        matrix.put_row(0, &[1e-44, 0.0]).unwrap();
        let mut back = [1.0; 2];
        matrix.decode_row(0, &mut back);
        assert_eq!(back, [0.0, 0.0]);
        assert_eq!(matrix.put_row(0, &[f32::NAN, 0.0]).unwrap_err().code(), "corrupt_file");
    }
}
