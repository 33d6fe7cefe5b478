//! Turns the bytes of one tensor, as they stream in, into its matrix or vector. A sink holds the
//! result and at most one row that is not complete; only master weights are held whole, since their
//! scale is a mean over all of them.

use super::plan::{Coding, Form, RowOrder};
use super::ternary_sinks::{Blocks, I2S, Mlx, Packed};
use crate::Result;
use crate::error::{corrupt, unsupported};
use crate::quant::{
    DenseEncoding, DenseMatrix, Int4Matrix, Int8Matrix, Matrix, TernaryFill, absmean, halves, hidden,
    try_zeroed,
};

/// A finished tensor.
pub(super) enum Value {
    Matrix(Matrix),
    Vector(Vec<f32>),
}

/// A tensor being read.
pub(super) struct TensorSink {
    sink: Box<dyn Sink>,
    unit: usize,
    partial: Vec<u8>,
}

/// Takes bytes in whole units.
pub(super) trait Sink {
    /// Bytes of a unit: a row, a block, an element.
    fn unit(&self) -> usize;
    /// Takes one or more whole units.
    fn take(&mut self, units: &[u8]) -> Result<()>;
    fn finish(self: Box<Self>) -> Result<Value>;
}

impl TensorSink {
    /// # Errors
    /// `out_of_memory` when the result cannot be allocated, `corrupt_file` when rows are not whole blocks.
    pub fn open(form: Form) -> Result<Self> {
        let sink: Box<dyn Sink> = match form {
            Form::Vector { len, encoding } => Box::new(Vector::new(len, encoding)?),
            Form::Matrix { rows, cols, order, coding } => open_matrix(rows, cols, order, coding)?,
        };
        Ok(Self { unit: sink.unit(), sink, partial: Vec::new() })
    }

    /// Takes the next bytes of the tensor, any number of them.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        if !self.partial.is_empty() {
            let taken = (self.unit - self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.partial.len() < self.unit {
                return Ok(());
            }
            self.sink.take(&self.partial)?;
            self.partial.clear();
        }
        let whole = bytes.len() / self.unit * self.unit;
        if whole > 0 {
            self.sink.take(&bytes[..whole])?;
        }
        self.partial.extend_from_slice(&bytes[whole..]);
        Ok(())
    }

    /// The tensor, after its last byte.
    pub fn finish(self) -> Result<Value> {
        self.sink.finish()
    }
}

fn open_matrix(rows: usize, cols: usize, order: RowOrder, coding: Coding) -> Result<Box<dyn Sink>> {
    Ok(match coding {
        Coding::Dense(encoding) => {
            Box::new(Dense { matrix: DenseMatrix::zeroed(rows, cols, encoding)?, order, next: 0 })
        }
        Coding::ToF16(encoding) => {
            let kept = Rounded::F16(DenseMatrix::zeroed(rows, cols, DenseEncoding::F16)?);
            Box::new(Rounding::new(cols, order, encoding, kept)?)
        }
        Coding::ToInt8(encoding) => {
            let kept = Rounded::Int8(Int8Matrix::unfilled(rows, cols)?);
            Box::new(Rounding::new(cols, order, encoding, kept)?)
        }
        Coding::ToInt4(encoding) => {
            let kept = Rounded::Int4(Int4Matrix::unfilled(rows, cols)?);
            Box::new(Rounding::new(cols, order, encoding, kept)?)
        }
        Coding::Floats(encoding) => Box::new(Floats::new(rows, cols, order, encoding)),
        Coding::Master(encoding) => {
            let matrix = DenseMatrix::zeroed(rows, cols, encoding)?;
            Box::new(Master(Dense { matrix, order, next: 0 }))
        }
        Coding::Blocks(encoding) => Box::new(Blocks::new(rows, cols, order, encoding)?),
        Coding::I2S(layout) => Box::new(I2S::new(rows, cols, order, layout)?),
        Coding::Packed => Box::new(Packed::new(rows, cols)?),
        Coding::Mlx => Box::new(Mlx::new(rows, cols)?),
    })
}

/// A list of floats.
struct Vector {
    values: Vec<f32>,
    next: usize,
    encoding: DenseEncoding,
}

impl Vector {
    fn new(len: usize, encoding: DenseEncoding) -> Result<Self> {
        Ok(Self { values: try_zeroed(len, "a weight vector")?, next: 0, encoding })
    }
}

impl Sink for Vector {
    fn unit(&self) -> usize {
        self.encoding.block().1
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        let count = units.len() / self.unit();
        self.encoding.decode(units, &mut self.values[self.next..self.next + count]);
        self.next += count;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        match self.values.iter().position(|value| !value.is_finite()) {
            None => Ok(Value::Vector(self.values)),
            Some(at) => Err(corrupt!("the value {at} is {}", self.values[at])),
        }
    }
}

/// Rows kept in the file's encoding.
struct Dense {
    matrix: DenseMatrix,
    order: RowOrder,
    next: usize,
}

impl Sink for Dense {
    fn unit(&self) -> usize {
        self.matrix.row_bytes()
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        if !self.matrix.encoding().scales_are_finite(units) {
            return Err(corrupt!("a scale after row {} is not a finite number", self.next));
        }
        for row in units.chunks_exact(self.unit()) {
            self.matrix.row_mut(self.order.destination(self.next)).copy_from_slice(row);
            self.next += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(Matrix::Dense(self.matrix)))
    }
}

/// Rows that are kept in another encoding than the file's, each rounded as it comes.
struct Rounding {
    order: RowOrder,
    encoding: DenseEncoding,
    row_bytes: usize,
    next: usize,
    values: Vec<f32>,
    kept: Rounded,
}

enum Rounded {
    F16(DenseMatrix),
    Int8(Int8Matrix),
    Int4(Int4Matrix),
}

impl Rounding {
    fn new(cols: usize, order: RowOrder, encoding: DenseEncoding, kept: Rounded) -> Result<Self> {
        let row_bytes = encoding.whole_row_bytes(cols)?;
        Ok(Self { order, encoding, row_bytes, next: 0, values: try_zeroed(cols, "a row of weights")?, kept })
    }
}

impl Sink for Rounding {
    fn unit(&self) -> usize {
        self.row_bytes
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        for row in units.chunks_exact(self.row_bytes) {
            let to = self.order.destination(self.next);
            self.next += 1;
            if let (Rounded::Int8(matrix), DenseEncoding::F16) = (&mut self.kept, self.encoding) {
                matrix.put_half_row(to, row)?;
                continue;
            }
            self.encoding.decode(row, &mut self.values);
            match &mut self.kept {
                Rounded::Int8(matrix) => matrix.put_row(to, &self.values)?,
                Rounded::Int4(matrix) => matrix.put_row(to, &self.values)?,
                Rounded::F16(matrix) => {
                    if !self.values.iter().all(|value| value.abs() <= halves::MAX) {
                        return Err(unsupported!(
                            "row {to} has weights that halves cannot hold: use embedding \"file\" or \"q8\""
                        ));
                    }
                    DenseEncoding::F16.encode(&self.values, matrix.row_mut(to));
                }
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(match self.kept {
            Rounded::F16(matrix) => Matrix::Dense(matrix),
            Rounded::Int8(matrix) => Matrix::Int8(matrix),
            Rounded::Int4(matrix) => Matrix::Int4(matrix),
        }))
    }
}

/// Master weights: kept until the mean of all is known.
struct Master(Dense);

impl Sink for Master {
    fn unit(&self) -> usize {
        self.0.unit()
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        self.0.take(units)
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(Matrix::Ternary(absmean::quantize(&self.0.matrix)?)))
    }
}

/// Float rows, kept as codes while every row so far is ternary and as floats from the first that is not.
struct Floats {
    rows: usize,
    cols: usize,
    order: RowOrder,
    encoding: DenseEncoding,
    next: usize,
    kept: Kept,
    values: Vec<f32>,
    codes: Vec<u8>,
    scales: Vec<f32>,
}

enum Kept {
    Nothing,
    Codes(TernaryFill),
    Floats(DenseMatrix),
}

impl Floats {
    fn new(rows: usize, cols: usize, order: RowOrder, encoding: DenseEncoding) -> Self {
        Self {
            rows,
            cols,
            order,
            encoding,
            next: 0,
            kept: Kept::Nothing,
            values: vec![0.0; cols],
            codes: vec![0; cols],
            scales: vec![0.0; cols.div_ceil(hidden::GROUP)],
        }
    }

    fn take_row(&mut self, bytes: &[u8]) -> Result<()> {
        let row = self.order.destination(self.next);
        if let Kept::Floats(matrix) = &mut self.kept {
            matrix.row_mut(row).copy_from_slice(bytes);
            return Ok(());
        }
        self.encoding.decode(bytes, &mut self.values);
        if hidden::codes_of_row(&self.values, &mut self.codes, &mut self.scales) {
            if matches!(self.kept, Kept::Nothing) {
                self.kept = Kept::Codes(TernaryFill::new(self.rows, self.cols, hidden::GROUP)?);
            }
            if let Kept::Codes(fill) = &mut self.kept {
                fill.next_row().copy_from_slice(&self.codes);
                fill.put(row, &self.scales)?;
            }
            return Ok(());
        }
        self.turn_dense()?.row_mut(row).copy_from_slice(bytes);
        Ok(())
    }

    /// Puts the rows so far back into floats; the values are the same.
    fn turn_dense(&mut self) -> Result<&mut DenseMatrix> {
        let mut matrix = DenseMatrix::zeroed(self.rows, self.cols, self.encoding)?;
        if let Kept::Codes(fill) = &mut self.kept {
            for row in (0..self.next).map(|row| self.order.destination(row)) {
                fill.decode_row(row, &mut self.codes, &mut self.values);
                self.encoding.encode(&self.values, matrix.row_mut(row));
            }
        }
        self.kept = Kept::Floats(matrix);
        match &mut self.kept {
            Kept::Floats(matrix) => Ok(matrix),
            _ => unreachable!("set in the line above"),
        }
    }
}

impl Sink for Floats {
    fn unit(&self) -> usize {
        self.cols * self.encoding.block().1
    }

    fn take(&mut self, units: &[u8]) -> Result<()> {
        for row in units.chunks_exact(self.unit()) {
            self.take_row(row)?;
            self.next += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value> {
        Ok(Value::Matrix(match self.kept {
            Kept::Codes(fill) => Matrix::Ternary(fill.finish()),
            Kept::Floats(matrix) => Matrix::Dense(matrix),
            Kept::Nothing => Matrix::Dense(DenseMatrix::zeroed(self.rows, self.cols, self.encoding)?),
        }))
    }
}
