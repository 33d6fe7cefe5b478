//! The canonical ternary matrix: 2-bit codes in the order in which the kernels read them.
//!
//! Layout "RI8-S4-128". Rows are cut into slabs of [`SLAB_ROWS`]; a slab is four *streams*, one for
//! each quarter of the columns, so that a kernel walks four addresses in lock step (one core keeps
//! more cache misses in flight that way). In a stream, rows go in groups of [`GROUP_ROWS`]; every
//! [`CHUNK_COLS`] columns of a group are 32 bytes: byte `i` of the first 16 holds rows 0–3 of column
//! `c + i` at two bits each, of the second 16 rows 4–7. One register of 16 activations thus serves
//! eight rows.
//!
//! A code is `weight + 1`: 0, 1, 2 for −1, 0, +1, and 3 for the +2 that `Q2_0` can express. Columns
//! are padded to a multiple of [`COL_ALIGN`] (activations are zero there, so the codes do not matter)
//! and rows to a multiple of [`GROUP_ROWS`].

use super::try_reserved;
use crate::Result;
use bytemuck::Zeroable;

/// Rows in a slab; the last one may be shorter.
pub const SLAB_ROWS: usize = 128;
/// Rows whose codes are interleaved.
pub const GROUP_ROWS: usize = 8;
/// Rows whose codes share bytes.
pub const QUAD_ROWS: usize = 4;
/// Columns in one 32-byte step of a group.
pub const CHUNK_COLS: usize = 16;
/// Column streams of a slab.
pub const STREAMS: usize = 4;
/// Columns are padded to a multiple of this.
pub const COL_ALIGN: usize = CHUNK_COLS * STREAMS;

/// What one code unit is worth: `weight = (code - 1) * scale`.
#[derive(Debug, Clone, PartialEq)]
pub enum Scales {
    /// One scale for the matrix.
    Tensor(f32),
    /// One scale a row.
    Row(Vec<f32>),
    /// One scale for every `size` columns of a row, row-major `[rows, ceil(cols / size)]`. `size` is a
    /// multiple of [`CHUNK_COLS`].
    Group { size: usize, values: Vec<f32> },
}

/// The scales of a matrix as kernels read them.
#[derive(Debug, Clone, PartialEq)]
pub enum KernelScales {
    Tensor(f32),
    Row(Vec<f32>),
    /// One scale for every `size` columns of a row, `[rows / 8, ceil(cols / size), 8]`: the rows of a group
    /// lie side by side, as their sums do. Rows are padded to whole groups.
    Group {
        size: usize,
        values: Vec<[f32; GROUP_ROWS]>,
    },
}

impl KernelScales {
    fn new(scales: Scales, cols: usize) -> Self {
        match scales {
            Scales::Tensor(scale) => KernelScales::Tensor(scale),
            Scales::Row(scales) => KernelScales::Row(scales),
            Scales::Group { size, values } => {
                let groups = cols.div_ceil(size);
                let interleave = |rows: &[f32], group| {
                    std::array::from_fn(|row| rows.get(row * groups + group).copied().unwrap_or(0.0))
                };
                let values = values
                    .chunks(GROUP_ROWS * groups)
                    .flat_map(|rows| (0..groups).map(move |group| interleave(rows, group)))
                    .collect();
                KernelScales::Group { size, values }
            }
        }
    }

    /// The scales of the eight rows from `first` on that have one each; rows that the matrix lacks have any.
    #[inline(always)]
    pub fn of_rows(&self, first: usize) -> [f32; GROUP_ROWS] {
        match self {
            KernelScales::Tensor(scale) => [*scale; GROUP_ROWS],
            KernelScales::Row(scales) => {
                std::array::from_fn(|row| scales.get(first + row).copied().unwrap_or_default())
            }
            KernelScales::Group { .. } => unreachable!("rows of groups have more than one scale"),
        }
    }

    /// The scale of `(row, col)` in a matrix of `cols` columns.
    pub fn at(&self, row: usize, col: usize, cols: usize) -> f32 {
        match self {
            KernelScales::Tensor(scale) => *scale,
            KernelScales::Row(scales) => scales[row],
            KernelScales::Group { size, values } => {
                values[row / GROUP_ROWS * cols.div_ceil(*size) + col / size][row % GROUP_ROWS]
            }
        }
    }
}

/// 64-byte storage unit, so that every slab starts on a cache line.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A `[rows, cols]` matrix of 2-bit codes with scales. See the module comment for the layout.
#[derive(Debug, Clone)]
pub struct TernaryMatrix {
    rows: usize,
    cols: usize,
    data: Vec<Line>,
    scales: KernelScales,
}

impl TernaryMatrix {
    /// An unfilled matrix; every row must be [put](Self::put_row) once.
    ///
    /// # Errors
    /// `out_of_memory` when the codes cannot be allocated.
    pub fn unfilled(rows: usize, cols: usize, scales: Scales) -> Result<Self> {
        let bytes = (rows.next_multiple_of(GROUP_ROWS) as u64)
            .saturating_mul(cols.next_multiple_of(COL_ALIGN) as u64)
            / 4;
        let lines = usize::try_from(bytes.div_ceil(64)).unwrap_or(usize::MAX);
        let data = try_reserved(lines, "ternary weights")?;
        Ok(Self { rows, cols, data, scales: KernelScales::new(scales, cols) })
    }

    /// A matrix of codes 0.
    ///
    /// # Errors
    /// As [`Self::unfilled`].
    pub fn blank(rows: usize, cols: usize, scales: Scales) -> Result<Self> {
        let mut matrix = Self::unfilled(rows, cols, scales)?;
        matrix.bytes_to_slab(rows / SLAB_ROWS);
        Ok(matrix)
    }

    /// Builds a matrix from row-major codes, one byte a code.
    pub fn from_codes(rows: usize, cols: usize, codes: &[u8], scales: Scales) -> Result<Self> {
        let mut matrix = Self::unfilled(rows, cols, scales)?;
        for (row, codes) in codes.chunks_exact(cols).enumerate() {
            matrix.put_row(row, codes);
        }
        Ok(matrix)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Columns including padding.
    pub fn padded_cols(&self) -> usize {
        self.cols.next_multiple_of(COL_ALIGN)
    }

    /// Rows including padding.
    pub fn padded_rows(&self) -> usize {
        self.rows.next_multiple_of(GROUP_ROWS)
    }

    pub fn scales(&self) -> &KernelScales {
        &self.scales
    }

    pub fn set_scales(&mut self, scales: Scales) {
        self.scales = KernelScales::new(scales, self.cols);
    }

    /// Multiplies every weight by `factor`.
    pub fn multiply(&mut self, factor: f32) {
        match &mut self.scales {
            KernelScales::Tensor(scale) => *scale *= factor,
            KernelScales::Row(values) => values.iter_mut().for_each(|value| *value *= factor),
            KernelScales::Group { values, .. } => {
                values.as_flattened_mut().iter_mut().for_each(|value| *value *= factor);
            }
        }
    }

    /// Bytes kept resident, scales included.
    pub fn resident_bytes(&self) -> usize {
        let scales = match &self.scales {
            KernelScales::Tensor(_) => 1,
            KernelScales::Row(values) => values.len(),
            KernelScales::Group { values, .. } => values.len() * GROUP_ROWS,
        };
        self.data.len() * size_of::<Line>() + scales * size_of::<f32>()
    }

    /// All code bytes, slab after slab.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.data)
    }

    /// Stores the codes of one row, one byte (0–3) a column. A row may be stored only once: codes are
    /// merged into bytes shared by four rows.
    pub fn put_row(&mut self, row: usize, codes: &[u8]) {
        assert!(row < self.rows && codes.len() == self.cols, "row {row} of {}", self.rows);
        let place = RowPlace::new(row, self.padded_rows(), self.padded_cols());
        let bytes = self.bytes_to_slab(row / SLAB_ROWS);
        for (index, chunk) in codes.chunks(CHUNK_COLS).enumerate() {
            let at = place.chunk_offset(index);
            for (byte, code) in bytes[at..at + CHUNK_COLS].iter_mut().zip(chunk) {
                *byte |= (code & 3) << place.shift;
            }
        }
    }

    /// Stores the codes of the four rows from `first`, a multiple of four, on: those that share bytes. As
    /// [`Self::put_row`] for each of them, but faster.
    pub(super) fn put_quad(&mut self, first: usize, codes: [&[u8]; QUAD_ROWS]) {
        assert!(first.is_multiple_of(QUAD_ROWS) && first + QUAD_ROWS <= self.rows);
        assert!(codes.iter().all(|row| row.len() == self.cols));
        let place = RowPlace::new(first, self.padded_rows(), self.padded_cols());
        let (cols, stream_cols) = (self.cols, place.chunks_per_stream * CHUNK_COLS);
        let bytes = self.bytes_to_slab(first / SLAB_ROWS);
        for (stream, from) in (0..cols).step_by(stream_cols).enumerate() {
            let columns = from..cols.min(from + stream_cols);
            let out = &mut bytes[place.base + stream * place.stream_stride..];
            pack(out, codes.map(|row| &row[columns.clone()]));
        }
    }

    /// All bytes up to the end of a slab at least.
    fn bytes_to_slab(&mut self, slab: usize) -> &mut [u8] {
        let rows = self.padded_rows().min((slab + 1) * SLAB_ROWS);
        let lines = rows * self.padded_cols() / 4 / size_of::<Line>();
        if self.data.len() < lines {
            self.data.resize(lines, Line::zeroed());
        }
        bytemuck::cast_slice_mut(&mut self.data)
    }

    /// Reads the codes of one row back, one byte a column.
    pub fn read_row(&self, row: usize, codes: &mut [u8]) {
        assert!(row < self.rows && codes.len() == self.cols, "row {row} of {}", self.rows);
        let place = RowPlace::new(row, self.padded_rows(), self.padded_cols());
        let bytes = self.bytes();
        for (index, chunk) in codes.chunks_mut(CHUNK_COLS).enumerate() {
            let at = place.chunk_offset(index);
            for (code, byte) in chunk.iter_mut().zip(&bytes[at..at + CHUNK_COLS]) {
                *code = (byte >> place.shift) & 3;
            }
        }
    }

    /// Decodes one row to `f32`; `out.len() == cols`.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        let mut codes = vec![0u8; self.cols];
        self.read_row(row, &mut codes);
        for (col, (value, code)) in out.iter_mut().zip(&codes).enumerate() {
            *value = (f32::from(*code) - 1.0) * self.scales.at(row, col, self.cols);
        }
    }
}

/// Packs the codes of four rows of a stream into a byte a column, in every other chunk of `out`, which holds all of
/// them.
fn pack(out: &mut [u8], rows: [&[u8]; QUAD_ROWS]) {
    let joined = |[a, b, c, d]: [u8; QUAD_ROWS]| a & 3 | (b & 3) << 2 | (c & 3) << 4 | d << 6;
    // The other quad's half of the last chunk may be the end of the matrix.
    let mut steps = out.chunks_mut(2 * CHUNK_COLS);
    let [a, b, c, d] = rows.map(|row| row.as_chunks::<CHUNK_COLS>());
    for ((((a, b), c), d), out) in a.0.iter().zip(b.0).zip(c.0).zip(d.0).zip(steps.by_ref()) {
        let chunk: [u8; CHUNK_COLS] = std::array::from_fn(|i| joined([a[i], b[i], c[i], d[i]]));
        out[..CHUNK_COLS].copy_from_slice(&chunk);
    }
    for (i, out) in steps.next().into_iter().flatten().take(a.1.len()).enumerate() {
        *out = joined([a.1[i], b.1[i], c.1[i], d.1[i]]);
    }
}

/// Where the codes of one row lie.
struct RowPlace {
    /// Offset of the row's first chunk in stream 0 of its slab.
    base: usize,
    /// Bytes between two streams of the slab.
    stream_stride: usize,
    chunks_per_stream: usize,
    shift: u32,
}

impl RowPlace {
    fn new(row: usize, padded_rows: usize, padded_cols: usize) -> Self {
        let first = row / SLAB_ROWS * SLAB_ROWS;
        let slab_rows = SLAB_ROWS.min(padded_rows - first);
        let in_slab = row - first;
        let (group, in_group) = (in_slab / GROUP_ROWS, in_slab % GROUP_ROWS);
        let chunks_per_stream = padded_cols / COL_ALIGN;
        Self {
            base: first * padded_cols / 4
                + group * chunks_per_stream * 2 * CHUNK_COLS
                + in_group / 4 * CHUNK_COLS,
            stream_stride: slab_rows * padded_cols / (4 * STREAMS),
            chunks_per_stream,
            shift: 2 * (in_group % 4) as u32,
        }
    }

    fn chunk_offset(&self, chunk: usize) -> usize {
        let (stream, index) = (chunk / self.chunks_per_stream, chunk % self.chunks_per_stream);
        self.base + stream * self.stream_stride + index * 2 * CHUNK_COLS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..Default::default() })]
        #[test]
        fn rows_come_back_as_they_were_put(rows in 1usize..300, cols in 1usize..400, seed in any::<u32>()) {
            let codes: Vec<u8> = (0..rows * cols)
                .map(|i| ((i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8 & 3)
                .collect();
            let matrix = TernaryMatrix::from_codes(rows, cols, &codes, Scales::Tensor(1.0)).unwrap();
            let mut back = vec![0u8; cols];
            for row in 0..rows {
                matrix.read_row(row, &mut back);
                prop_assert_eq!(&back[..], &codes[row * cols..(row + 1) * cols]);
            }
        }
    }
}
