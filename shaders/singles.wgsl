// Codes and bytes as singles: integers below 2²⁴ are exact in them, and devices that have no packed products of
// bytes multiply and add singles fastest.
//
// Nothing here shifts: software adapters take a vector apart for it, lane by lane. Codes stay where they are in
// their word and are worth 4ʳᵒʷ · 256ᶜᵒˡᵘᵐⁿ of what they are, which activations make up for by columns and
// `ROW_UNITS` by rows. Factors that are powers of two are exact.

/// A row's codes of a word's four columns.
const ROW0 = vec4(0x3u, 0x300u, 0x30000u, 0x3000000u);
const ROW1 = vec4(0xcu, 0xc00u, 0xc0000u, 0xc000000u);
const ROW2 = vec4(0x30u, 0x3000u, 0x300000u, 0x30000000u);
const ROW3 = vec4(0xc0u, 0xc000u, 0xc00000u, 0xc0000000u);
/// Brings each byte of a word to its top.
const TO_TOP = vec4(0x1000000u, 0x10000u, 0x100u, 1u);
/// Of [`byte_tops`], divided by what a column's codes are worth.
const COLUMN_UNITS = vec4(0x1p-24f, 0x1p-32f, 0x1p-40f, 0x1p-48f);
/// What makes bytes of [`input_singles`] whole again.
const WHOLE = vec4(1.0, 256.0, 65536.0, 16777216.0);
const ROW_UNITS = vec4(1.0, 0.25, 0.0625, 0.015625);

fn row_singles(word: u32, row: vec4<u32>) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4(word) & row));
}

/// The last row's topmost code meets the sign of an integer.
fn last_row_singles(word: u32) -> vec4<f32> {
    let codes = vec4(word) & ROW3;
    return vec4(vec3<f32>(bitcast<vec3<i32>>(codes.xyz)), f32(codes.w));
}

/// Four signed bytes, each times 2²⁴.
fn byte_tops(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>((vec4(word) * TO_TOP) & vec4(0xff000000u)));
}

/// Four signed bytes, each divided by what its column's codes are worth.
fn input_singles(word: u32) -> vec4<f32> {
    return byte_tops(word) * COLUMN_UNITS;
}

/// Codes of a word of eight rows.
struct Rows {
    lo0: vec4<f32>, lo1: vec4<f32>, lo2: vec4<f32>, lo3: vec4<f32>,
    hi0: vec4<f32>, hi1: vec4<f32>, hi2: vec4<f32>, hi3: vec4<f32>,
}

fn rows_of(lo: u32, hi: u32) -> Rows {
    return Rows(
        row_singles(lo, ROW0), row_singles(lo, ROW1), row_singles(lo, ROW2), last_row_singles(lo),
        row_singles(hi, ROW0), row_singles(hi, ROW1), row_singles(hi, ROW2), last_row_singles(hi),
    );
}

/// `sums` and the products of rows with a word of activations, in the rows' units.
fn add_products(sums: Values, rows: Rows, x: vec4<f32>) -> Values {
    var all = sums;
    all.lo.x += dot(rows.lo0, x);
    all.lo.y += dot(rows.lo1, x);
    all.lo.z += dot(rows.lo2, x);
    all.lo.w += dot(rows.lo3, x);
    all.hi.x += dot(rows.hi0, x);
    all.hi.y += dot(rows.hi1, x);
    all.hi.z += dot(rows.hi2, x);
    all.hi.w += dot(rows.hi3, x);
    return all;
}
