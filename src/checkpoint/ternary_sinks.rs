//! The [`Sink`]s of ternary encodings: bytes → codes → rows of a [`TernaryMatrix`].

use super::plan::RowOrder;
use super::sink::{Sink, Value};
use crate::Result;
use crate::error::corrupt;
use crate::quant::i2_s::{self, I2sLayout};
use crate::quant::{Matrix, Scales, TernaryBlocks, TernaryFill, TernaryMatrix, hf_packed, mlx2};

/// Rows of blocks with a scale each.
pub(super) struct Blocks {
    fill: TernaryFill,
    encoding: TernaryBlocks,
    order: RowOrder,
    next: usize,
    row_bytes: usize,
    codes: Vec<u8>,
    scales: Vec<f32>,
}

impl Blocks {
    pub fn new(rows: usize, cols: usize, order: RowOrder, encoding: TernaryBlocks) -> Result<Self> {
        let (codes, bytes) = encoding.block();
        Ok(Self {
            fill: TernaryFill::new(rows, cols, codes)?,
            encoding,
            order,
            next: 0,
            row_bytes: cols / codes * bytes,
            codes: vec![0; cols],
            scales: vec![0.0; cols / codes],
        })
    }
}

impl Sink for Blocks {
    fn unit(&self) -> usize {
        self.row_bytes
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        for row in units.chunks_exact(self.row_bytes) {
            self.encoding.decode_row(row, &mut self.codes, &mut self.scales);
            self.fill.put(self.order.destination(self.next), &mut self.codes, &self.scales)?;
            self.next += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(Matrix::Ternary(self.fill.finish())))
    }
}

/// `I2_S`: blocks over the flat tensor, which may straddle rows, then a scale.
pub(super) struct I2S {
    matrix: TernaryMatrix,
    layout: I2sLayout,
    order: RowOrder,
    next: usize,
    /// Codes of the row that is not complete.
    row: Vec<u8>,
    scale: f32,
}

impl I2S {
    pub fn new(rows: usize, cols: usize, order: RowOrder, layout: I2sLayout) -> Result<Self> {
        let matrix = TernaryMatrix::unfilled(rows, cols, Scales::Tensor(1.0))?;
        Ok(Self { matrix, layout, order, next: 0, row: Vec::with_capacity(cols), scale: f32::NAN })
    }

    fn take_codes(&mut self, mut codes: &[u8]) {
        let cols = self.matrix.cols();
        while !codes.is_empty() {
            let taken = (cols - self.row.len()).min(codes.len());
            self.row.extend_from_slice(&codes[..taken]);
            codes = &codes[taken..];
            if self.row.len() == cols {
                self.matrix.put_row(self.order.destination(self.next), &self.row);
                self.row.clear();
                self.next += 1;
            }
        }
    }
}

impl Sink for I2S {
    /// Codes and the tail that holds the scale come in units of the same size.
    fn unit(&self) -> usize {
        const { assert!(i2_s::BLOCK_BYTES == i2_s::TAIL_BYTES) };
        i2_s::BLOCK_BYTES
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        let mut codes = [0u8; i2_s::BLOCK_CODES];
        for block in units.as_chunks::<{ i2_s::BLOCK_BYTES }>().0 {
            if self.next == self.matrix.rows() {
                self.scale = i2_s::scale(block);
            } else {
                i2_s::decode(self.layout, block, &mut codes);
                self.take_codes(&codes);
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Value> {
        if !self.scale.is_finite() {
            return Err(corrupt!("its scale is {}", self.scale));
        }
        self.matrix.set_scales(Scales::Tensor(self.scale));
        Ok(Value::Matrix(Matrix::Ternary(self.matrix)))
    }
}

/// Packed `U8` of Hugging Face: four rows, a quarter of the matrix apart, in each row of bytes.
pub(super) struct Packed {
    matrix: TernaryMatrix,
    next: usize,
    codes: Vec<u8>,
}

impl Packed {
    pub fn new(rows: usize, cols: usize) -> Result<Self> {
        let matrix = TernaryMatrix::unfilled(rows, cols, Scales::Tensor(1.0))?;
        Ok(Self { matrix, next: 0, codes: vec![0; cols] })
    }
}

impl Sink for Packed {
    fn unit(&self) -> usize {
        self.matrix.cols()
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        let quarter_rows = self.matrix.rows() / hf_packed::ROWS_PER_BYTE;
        for packed in units.chunks_exact(self.matrix.cols()) {
            for quarter in 0..hf_packed::ROWS_PER_BYTE {
                hf_packed::decode(packed, quarter, &mut self.codes);
                self.matrix.put_row(quarter * quarter_rows + self.next, &self.codes);
            }
            self.next += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(Matrix::Ternary(self.matrix)))
    }
}

/// Codes of MLX; scales and biases are tensors of their own.
pub(super) struct Mlx {
    matrix: TernaryMatrix,
    next: usize,
    codes: Vec<u8>,
}

impl Mlx {
    pub fn new(rows: usize, cols: usize) -> Result<Self> {
        let matrix = TernaryMatrix::unfilled(rows, cols, Scales::Tensor(1.0))?;
        Ok(Self { matrix, next: 0, codes: vec![0; cols] })
    }
}

impl Sink for Mlx {
    fn unit(&self) -> usize {
        self.matrix.cols() / 4
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        for words in units.chunks_exact(self.unit()) {
            mlx2::decode(words, &mut self.codes);
            self.matrix.put_row(self.next, &self.codes);
            self.next += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(Matrix::Ternary(self.matrix)))
    }
}
