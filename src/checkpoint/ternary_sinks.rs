//! The [`Sink`]s of ternary encodings: bytes → codes → rows of a [`TernaryMatrix`].

use super::plan::RowOrder;
use super::sink::{Sink, Value};
use crate::Result;
use crate::error::corrupt;
use crate::quant::i2_s::{self, I2sLayout};
use crate::quant::ternary::QUAD_ROWS;
use crate::quant::{Matrix, Scales, TernaryBlocks, TernaryFill, TernaryRows, hf_packed, mlx2};

/// Rows of blocks with a scale each.
pub(super) struct Blocks {
    fill: TernaryFill,
    encoding: TernaryBlocks,
    order: RowOrder,
    next: usize,
    row_bytes: usize,
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
            self.encoding.decode_row(row, self.fill.next_row(), &mut self.scales);
            self.fill.put(self.order.destination(self.next), &self.scales)?;
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
    rows: TernaryRows,
    layout: I2sLayout,
    order: RowOrder,
    next: usize,
    /// Codes that the next row has so far.
    column: usize,
    scale: f32,
}

impl I2S {
    pub fn new(rows: usize, cols: usize, order: RowOrder, layout: I2sLayout) -> Result<Self> {
        let rows = TernaryRows::new(rows, cols)?;
        Ok(Self { rows, layout, order, next: 0, column: 0, scale: f32::NAN })
    }

    fn take_block(&mut self, block: &[u8; i2_s::BLOCK_BYTES]) {
        if let Some(codes) = self.rows.next_row()[self.column..].first_chunk_mut() {
            i2_s::decode(self.layout, block, codes);
            self.advance(i2_s::BLOCK_CODES);
            return;
        }
        let mut codes = [0u8; i2_s::BLOCK_CODES];
        i2_s::decode(self.layout, block, &mut codes);
        let mut left = &codes[..];
        // The last block of a tensor ends with its last row.
        while !left.is_empty() && self.next < self.rows.rows() {
            let room = &mut self.rows.next_row()[self.column..];
            let taken = room.len().min(left.len());
            room[..taken].copy_from_slice(&left[..taken]);
            left = &left[taken..];
            self.advance(taken);
        }
    }

    fn advance(&mut self, codes: usize) {
        self.column += codes;
        if self.column == self.rows.cols() {
            self.rows.put(self.order.destination(self.next));
            self.column = 0;
            self.next += 1;
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
        for block in units.as_chunks::<{ i2_s::BLOCK_BYTES }>().0 {
            if self.next == self.rows.rows() {
                self.scale = i2_s::scale(block);
            } else {
                self.take_block(block);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        if !self.scale.is_finite() {
            return Err(corrupt!("its scale is {}", self.scale));
        }
        let mut matrix = self.rows.finish();
        matrix.set_scales(Scales::Tensor(self.scale));
        Ok(Value::Matrix(Matrix::Ternary(matrix)))
    }
}

/// Packed `U8` of Hugging Face: four rows, a quarter of the matrix apart, in each row of bytes.
pub(super) struct Packed {
    rows: TernaryRows,
    /// Rows of bytes so far.
    next: usize,
    /// Rows of bytes that were not decoded yet: as many as there are rows of a quarter that share bytes.
    gathered: Vec<u8>,
}

impl Packed {
    pub fn new(rows: usize, cols: usize) -> Result<Self> {
        let gathered = Vec::with_capacity(QUAD_ROWS * cols);
        Ok(Self { rows: TernaryRows::new(rows, cols)?, next: 0, gathered })
    }

    /// Decodes what was gathered, quarter by quarter.
    fn decode(&mut self) {
        let cols = self.rows.cols();
        let quarter_rows = self.rows.rows() / hf_packed::ROWS_PER_BYTE;
        for quarter in 0..hf_packed::ROWS_PER_BYTE {
            for (row, packed) in self.gathered.chunks_exact(cols).enumerate() {
                hf_packed::decode(packed, quarter, self.rows.next_row());
                self.rows.put(quarter * quarter_rows + self.next + row);
            }
        }
        self.next += self.gathered.len() / cols;
        self.gathered.clear();
    }
}

impl Sink for Packed {
    fn unit(&self) -> usize {
        self.rows.cols()
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        for packed in units.chunks_exact(self.rows.cols()) {
            self.gathered.extend_from_slice(packed);
            if self.gathered.len() == QUAD_ROWS * packed.len() {
                self.decode();
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Value> {
        self.decode();
        Ok(Value::Matrix(Matrix::Ternary(self.rows.finish())))
    }
}

/// Codes of MLX; scales and biases are tensors of their own.
pub(super) struct Mlx {
    rows: TernaryRows,
    next: usize,
}

impl Mlx {
    pub fn new(rows: usize, cols: usize) -> Result<Self> {
        Ok(Self { rows: TernaryRows::new(rows, cols)?, next: 0 })
    }
}

impl Sink for Mlx {
    fn unit(&self) -> usize {
        self.rows.cols() / 4
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        for words in units.chunks_exact(self.unit()) {
            mlx2::decode(words, self.rows.next_row());
            self.rows.put(self.next);
            self.next += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(Matrix::Ternary(self.rows.finish())))
    }
}
