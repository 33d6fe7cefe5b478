//! Fills a [`TernaryMatrix`] row by row. Four rows share every byte there, so rows are gathered and those that
//! share bytes are stored at once, whole bytes at a time.

use super::TernaryMatrix;
use super::ternary::{QUAD_ROWS, Scales};
use crate::Result;

/// Rows that are gathered: two quads, since the two halves of a head may come row by row in turn.
const PANEL_ROWS: usize = 2 * QUAD_ROWS;

/// A matrix under construction. Its scales are set afterwards.
pub struct TernaryRows {
    matrix: TernaryMatrix,
    /// The codes of the rows that are gathered, and one more that is being written.
    codes: Vec<u8>,
    /// Which rows of the matrix are gathered.
    places: [usize; PANEL_ROWS],
    gathered: usize,
}

impl TernaryRows {
    /// # Errors
    /// `out_of_memory`.
    pub fn new(rows: usize, cols: usize) -> Result<Self> {
        Ok(Self {
            matrix: TernaryMatrix::unfilled(rows, cols, Scales::Tensor(1.0))?,
            codes: vec![0; PANEL_ROWS * cols],
            places: [0; PANEL_ROWS],
            gathered: 0,
        })
    }

    pub fn rows(&self) -> usize {
        self.matrix.rows()
    }

    pub fn cols(&self) -> usize {
        self.matrix.cols()
    }

    /// Where the codes of the next row are to be written, one byte (0–3) a column.
    pub fn next_row(&mut self) -> &mut [u8] {
        let cols = self.cols();
        &mut self.codes[self.gathered * cols..][..cols]
    }

    /// Takes what was written to [`Self::next_row`] as row `place`. A row may be put only once.
    pub fn put(&mut self, place: usize) {
        assert!(place < self.rows(), "row {place} of {}", self.rows());
        self.places[self.gathered] = place;
        self.gathered += 1;
        let last_of_quad = place % QUAD_ROWS == QUAD_ROWS - 1;
        let is_quad = self.gathered == QUAD_ROWS && last_of_quad && self.places[0] + QUAD_ROWS == place + 1;
        if is_quad || self.gathered == PANEL_ROWS {
            self.store();
        }
    }

    /// The matrix with all rows so far.
    pub fn so_far(&mut self) -> &TernaryMatrix {
        self.store();
        &self.matrix
    }

    /// The finished matrix, with a scale of 1.
    pub fn finish(mut self) -> TernaryMatrix {
        self.store();
        self.matrix
    }

    fn store(&mut self) {
        let cols = self.cols();
        let places = &self.places[..self.gathered];
        let codes = |index: usize| &self.codes[index * cols..][..cols];
        for (index, place) in places.iter().enumerate() {
            let first = place / QUAD_ROWS * QUAD_ROWS;
            let quad: [_; QUAD_ROWS] =
                std::array::from_fn(|row| places.iter().position(|other| *other == first + row));
            match quad {
                [Some(a), Some(b), Some(c), Some(d)] if a == index => {
                    self.matrix.put_quad(first, [a, b, c, d].map(codes));
                }
                [Some(_), Some(_), Some(_), Some(_)] => {}
                _ => self.matrix.put_row(*place, codes(index)),
            }
        }
        self.gathered = 0;
    }
}
