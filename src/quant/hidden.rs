//! Finds ternary matrices that are stored as floats: rows whose every group of columns holds only
//! `-s`, `0` and `+s` (TriLM, Ternary-Bonsai `-unpacked`). Such rows are kept as codes with exactly
//! the same values.

/// Columns that may share a scale.
pub const GROUP: usize = 128;

/// Fills `codes` (one a column) and `scales` (one a group of [`GROUP`] columns; 0 where the group is all
/// zero) from a row; `false` when some group has other values than `-s`, `0`, `+s`.
pub fn codes_of_row(row: &[f32], codes: &mut [u8], scales: &mut [f32]) -> bool {
    let groups = row.chunks(GROUP).zip(codes.chunks_mut(GROUP));
    for ((values, codes), scale) in groups.zip(scales) {
        let top = values.iter().fold(0f32, |top, value| top.max(value.abs()));
        let fits = values.iter().fold(true, |fits, value| fits & (*value == 0.0 || value.abs() == top));
        if !fits || !top.is_finite() {
            return false;
        }
        for (code, value) in codes.iter_mut().zip(values) {
            *code = 1 + u8::from(*value > 0.0) - u8::from(*value < 0.0);
        }
        *scale = top;
    }
    true
}
