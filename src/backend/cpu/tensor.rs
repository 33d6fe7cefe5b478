//! Activations on the CPU: a row-major block of `f32`.

/// `[tokens, width]`, one row a token.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuTensor {
    tokens: usize,
    width: usize,
    data: Vec<f32>,
}

impl CpuTensor {
    pub fn zeros(tokens: usize, width: usize) -> Self {
        Self { tokens, width, data: vec![0.0; tokens * width] }
    }

    /// Takes row-major data; `data.len()` is a multiple of `width`.
    pub fn from_data(width: usize, data: Vec<f32>) -> Self {
        assert!(data.len().is_multiple_of(width));
        Self { tokens: data.len() / width, width, data }
    }

    pub fn tokens(&self) -> usize {
        self.tokens
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn row(&self, token: usize) -> &[f32] {
        &self.data[token * self.width..(token + 1) * self.width]
    }

    pub fn row_mut(&mut self, token: usize) -> &mut [f32] {
        &mut self.data[token * self.width..(token + 1) * self.width]
    }

    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.data.chunks_exact_mut(self.width)
    }

    pub fn data(&self) -> &[f32] {
        &self.data
    }

    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Drops all but the last `rows` tokens.
    pub fn into_last_rows(mut self, rows: usize) -> Self {
        self.data.drain(..(self.tokens - rows) * self.width);
        self.tokens = rows;
        self
    }
}
