//! Fills a [`TernaryMatrix`] row by row as a file streams in, and finds the coarsest scales that give
//! exactly the same weights (a BitNet tensor in `TQ2_0` repeats one scale in every block).

use super::{Scales, TernaryMatrix, TernaryRows, try_zeroed};
use crate::Result;
use crate::error::corrupt;

/// A ternary matrix under construction, with one scale for every `group` columns.
pub struct TernaryFill {
    rows: TernaryRows,
    group: usize,
    /// Row-major `[rows, ceil(cols / group)]`; 0 where all weights of the group are zero.
    scales: Vec<f32>,
}

impl TernaryFill {
    /// # Errors
    /// `out_of_memory`.
    pub fn new(rows: usize, cols: usize, group: usize) -> Result<Self> {
        let scales = try_zeroed(rows.saturating_mul(cols.div_ceil(group)), "weight scales")?;
        Ok(Self { rows: TernaryRows::new(rows, cols)?, group, scales })
    }

    /// Where the codes of the next row are to be written, one byte (0–3) a column.
    pub fn next_row(&mut self) -> &mut [u8] {
        self.rows.next_row()
    }

    /// Stores what was written to [`Self::next_row`] as row `row`, with a scale for each group.
    ///
    /// # Errors
    /// `corrupt_file` when a scale is NaN or infinite.
    pub fn put(&mut self, row: usize, scales: &[f32]) -> Result<()> {
        let groups = scales.len();
        let kept = &mut self.scales[row * groups..(row + 1) * groups];
        for ((codes, scale), kept) in self.rows.next_row().chunks_mut(self.group).zip(scales).zip(kept) {
            if !scale.is_finite() {
                return Err(corrupt!("a scale of row {row} is {scale}"));
            }
            // Either way all weights of the group are zero; saying so in both places lets any scale
            // stand in for this one.
            if *scale == 0.0 {
                codes.fill(1);
            } else if has_weights(codes) {
                *kept = *scale;
            }
        }
        self.rows.put(row);
        Ok(())
    }

    /// Decodes a row that was put.
    pub fn decode_row(&mut self, row: usize, codes: &mut [u8], out: &mut [f32]) {
        self.rows.so_far().read_row(row, codes);
        let groups = self.rows.cols().div_ceil(self.group);
        for (col, (value, code)) in out.iter_mut().zip(codes).enumerate() {
            *value = (f32::from(*code) - 1.0) * self.scales[row * groups + col / self.group];
        }
    }

    /// The finished matrix.
    pub fn finish(self) -> TernaryMatrix {
        let mut matrix = self.rows.finish();
        let scales = Scales::Group { size: self.group, values: self.scales };
        matrix.set_scales(merge(scales, matrix.cols()));
        matrix
    }
}

/// Whether a weight of a group is not zero.
fn has_weights(codes: &[u8]) -> bool {
    // Without an early end, for the compiler to use vectors.
    codes.iter().fold(0, |differences, code| differences | (code ^ 1)) != 0
}

/// The coarsest scales with the same weights. A scale of 0 agrees with any other.
pub(super) fn merge(scales: Scales, cols: usize) -> Scales {
    let Scales::Group { mut size, mut values } = scales else {
        return scales;
    };
    if let Some(scale) = common(&values) {
        return Scales::Tensor(scale);
    }
    let rows: Option<Vec<f32>> = values.chunks(cols.div_ceil(size)).map(common).collect();
    if let Some(rows) = rows {
        return Scales::Row(rows);
    }
    while size < cols {
        let pairs = || values.chunks(cols.div_ceil(size)).flat_map(|row| row.chunks(2));
        let Some(merged) = pairs().map(common).collect() else {
            break;
        };
        (size, values) = (2 * size, merged);
    }
    Scales::Group { size, values }
}

/// The one value of `scales` besides 0 (0 if there is no other).
fn common(scales: &[f32]) -> Option<f32> {
    let first = scales.iter().copied().find(|scale| *scale != 0.0).unwrap_or(0.0);
    scales.iter().all(|scale| *scale == first || *scale == 0.0).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::super::KernelScales;
    use super::*;

    #[test]
    fn scales_merge_as_far_as_they_agree_and_no_further() {
        let group = |size, values: &[f32]| Scales::Group { size, values: values.to_vec() };
        assert_eq!(merge(group(64, &[2.0, 0.0, 2.0, 2.0]), 128), Scales::Tensor(2.0));
        assert_eq!(merge(group(64, &[2.0, 0.0, 3.0, 3.0]), 128), Scales::Row(vec![2.0, 3.0]));
        assert_eq!(
            merge(group(64, &[2.0, 2.0, 3.0, 1.0, 0.0, 5.0]), 192),
            group(128, &[2.0, 3.0, 1.0, 5.0]).clone()
        );
        assert_eq!(merge(group(64, &[2.0, 3.0]), 128), group(64, &[2.0, 3.0]));
    }

    #[test]
    fn a_zero_scale_makes_zero_weights_whatever_the_codes() {
        let mut fill = TernaryFill::new(1, 64, 32).unwrap();
        fill.next_row().fill(2);
        fill.put(0, &[0.0, 1.5]).unwrap();
        let matrix = fill.finish();
        assert_eq!(matrix.scales(), &KernelScales::Tensor(1.5));
        let mut row = [0f32; 64];
        matrix.decode_row(0, &mut row);
        assert!(row[..32].iter().all(|v| *v == 0.0) && row[32..].iter().all(|v| *v == 1.5));
    }

    #[test]
    fn a_nan_scale_is_refused() {
        let mut fill = TernaryFill::new(1, 32, 32).unwrap();
        assert_eq!(fill.put(0, &[f32::NAN]).unwrap_err().code(), "corrupt_file");
    }
}
