//! Every weight encoding against the reference decoders' output (tools/reference/gen_ref.py).

use safetensors::{Dtype, SafeTensors};
use sterna::quant::i2_s::{self, I2sLayout};
use sterna::quant::{
    DenseEncoding, DenseMatrix, Int8Matrix, KernelScales, Matrix, Scales, TernaryBlocks, TernaryFill,
    TernaryMatrix, TernaryRows, absmean, hf_packed, hidden, mlx2,
};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

const VECTORS: &[u8] = include_bytes!("fixtures/codec_vectors.safetensors");
const ROWS: usize = 4;
const COLS: usize = 512;

fn bytes(name: &str) -> Vec<u8> {
    SafeTensors::deserialize(VECTORS).unwrap().tensor(name).unwrap().data().to_vec()
}

fn floats(name: &str) -> Vec<f32> {
    let file = SafeTensors::deserialize(VECTORS).unwrap();
    let tensor = file.tensor(name).unwrap();
    let encoding = match tensor.dtype() {
        Dtype::F32 => DenseEncoding::F32,
        Dtype::F16 => DenseEncoding::F16,
        other => panic!("{name} is {other}"),
    };
    let mut values = vec![0.0; tensor.shape().iter().product()];
    encoding.decode(tensor.data(), &mut values);
    values
}

/// The ternary matrix behind all vectors, as codes.
fn codes() -> Vec<u8> {
    bytes("trits_i8").iter().map(|trit| (*trit as i8 + 1) as u8).collect()
}

fn decoded(matrix: &Matrix) -> Vec<f32> {
    let mut values = vec![0.0; matrix.rows() * matrix.cols()];
    for (row, out) in values.chunks_exact_mut(matrix.cols()).enumerate() {
        matrix.decode_row(row, out);
    }
    values
}

fn from_blocks(encoding: TernaryBlocks, bytes: &[u8]) -> TernaryMatrix {
    let (block, block_bytes) = encoding.block();
    let mut fill = TernaryFill::new(ROWS, COLS, block).unwrap();
    let mut scales = vec![0.0; COLS / block];
    let rows = bytes.chunks_exact(COLS / block * block_bytes);
    assert_eq!(rows.len(), ROWS, "{encoding:?}");
    for (row, bytes) in rows.enumerate() {
        encoding.decode_row(bytes, fill.next_row(), &mut scales);
        fill.put(row, &scales).unwrap();
    }
    fill.finish()
}

#[test]
fn ternary_block_encodings_decode_to_the_same_matrix() {
    let cases = [
        (TernaryBlocks::Tq1_0, "tq1_0_bytes", "tq1_0_dequant"),
        (TernaryBlocks::Tq2_0, "tq2_0_bytes", "tq2_0_dequant"),
        (TernaryBlocks::Q2_0G64, "q2_0_g64_bytes", "w_f32"),
        (TernaryBlocks::Q2_0G128, "q2_0_g128_bytes", "w_f32"),
        (TernaryBlocks::Ptq1_0, "ptq1_0_bytes", "w_f32"),
    ];
    for (encoding, stored, wanted) in cases {
        let matrix = from_blocks(encoding, &bytes(stored));
        assert_eq!(matrix.scales(), &KernelScales::Row(floats("row_scale_f32")), "{encoding:?}");
        assert_eq!(decoded(&Matrix::Ternary(matrix)), floats(wanted), "{encoding:?}");
    }
}

#[test]
fn dense_block_encodings_decode_exactly() {
    let cases = [
        (DenseEncoding::Q8_0, "q8_0"),
        (DenseEncoding::Q4_0, "q4_0"),
        (DenseEncoding::Q6K, "q6_k"),
        (DenseEncoding::Q4K, "q4_k"),
    ];
    for (encoding, name) in cases {
        let stored = bytes(&format!("{name}_bytes"));
        assert!(encoding.scales_are_finite(&stored));
        let mut values = vec![0.0; ROWS * COLS];
        encoding.decode(&stored, &mut values);
        assert_eq!(values, floats(&format!("{name}_dequant")), "{name}");
    }
}

#[test]
fn q4_1_is_scale_times_nibble_plus_minimum() {
    let mut block = vec![0x00, 0x38, 0x00, 0xc0]; // d = 0.5, m = -2
    block.extend((0..16u8).map(|j| j | (15 - j) << 4));
    let mut values = [0.0; 32];
    DenseEncoding::Q4_1.decode(&block, &mut values);
    for j in 0..16 {
        assert_eq!(values[j], j as f32 * 0.5 - 2.0);
        assert_eq!(values[j + 16], (15 - j) as f32 * 0.5 - 2.0);
    }
}

#[test]
fn q1_0_is_plus_or_minus_the_scale() {
    let mut block = vec![0x00, 0x3e]; // d = 1.5
    block.extend((0..16u8).map(|byte| 1 << (byte % 8)));
    let (mut codes, mut scales) = (vec![9; 128], [0.0]);
    TernaryBlocks::Q1_0.decode_row(&block, &mut codes, &mut scales);
    assert_eq!(scales, [1.5]);
    for (j, code) in codes.iter().enumerate() {
        assert_eq!(*code, if j % 8 == j / 8 % 8 { 2 } else { 0 }, "{j}");
    }
}

#[test]
fn code_3_of_q2_0_is_plus_two() {
    let mut block = vec![0x00, 0x3c]; // d = 1
    block.extend([0b11_10_01_00; 16]);
    let mut fill = TernaryFill::new(1, 64, 64).unwrap();
    let mut scales = [0.0];
    TernaryBlocks::Q2_0G64.decode_row(&block, fill.next_row(), &mut scales);
    fill.put(0, &scales).unwrap();
    let values = decoded(&Matrix::Ternary(fill.finish()));
    assert!(values.chunks_exact(4).all(|values| values == [-1.0, 0.0, 1.0, 2.0]));
}

#[test]
fn i2_s_decodes_in_both_layouts() {
    let stored = bytes("i2_s_bytes_scale1.5");
    let (blocks, tail) = stored.split_at(stored.len() - i2_s::TAIL_BYTES);
    assert_eq!(i2_s::scale(tail.first_chunk().unwrap()), 1.5);
    let mut ours = vec![0; ROWS * COLS];
    for (block, out) in blocks.as_chunks().0.iter().zip(ours.as_chunks_mut().0) {
        i2_s::decode(I2sLayout::X86, block, out);
    }
    assert_eq!(ours, codes());

    // Byte p of each 16 holds codes p, p + 16, p + 32, p + 48 of 64, highest bits first.
    let arm: Vec<u8> = codes()
        .chunks_exact(64)
        .flat_map(|c| (0..16).map(move |p| c[p] << 6 | c[p + 16] << 4 | c[p + 32] << 2 | c[p + 48]))
        .collect();
    for (block, out) in arm.as_chunks().0.iter().zip(ours.as_chunks_mut().0) {
        i2_s::decode(I2sLayout::Arm, block, out);
    }
    assert_eq!(ours, codes());
}

#[test]
fn packed_bytes_hold_rows_a_quarter_apart() {
    let packed = bytes("hf_u8_packed");
    let mut ours = vec![0; COLS];
    for (row, wanted) in codes().chunks_exact(COLS).enumerate() {
        hf_packed::decode(&packed, row, &mut ours);
        assert_eq!(ours, wanted, "row {row}");
    }
}

fn mlx_codes() -> TernaryMatrix {
    let words = bytes("mlx2_words_i32");
    let mut matrix = TernaryMatrix::unfilled(ROWS, COLS, Scales::Tensor(1.0)).unwrap();
    let mut codes = vec![0; COLS];
    for (row, words) in words.chunks_exact(COLS / 4).enumerate() {
        mlx2::decode(words, &mut codes);
        matrix.put_row(row, &codes);
    }
    matrix
}

#[test]
fn mlx_groups_with_opposite_biases_are_ternary() {
    let scales = floats("mlx2_scales");
    let biases: Vec<f32> = scales.iter().map(|scale| -scale).collect();
    let matrix = mlx2::join(mlx_codes(), 128, scales, &biases).unwrap();
    assert!(matches!(matrix, Matrix::Ternary(_)));
    assert_eq!(decoded(&matrix), floats("w_f32"));
}

#[test]
fn mlx_groups_with_other_biases_become_dense() {
    let scales = floats("mlx2_scales");
    let biases = vec![0.25; scales.len()];
    let matrix = mlx2::join(mlx_codes(), 128, scales.clone(), &biases).unwrap();
    assert!(matches!(matrix, Matrix::Dense(_)));
    let wanted: Vec<f32> =
        codes().iter().enumerate().map(|(at, code)| f32::from(*code) * scales[at / 128] + 0.25).collect();
    assert_eq!(decoded(&matrix), wanted);
}

#[test]
fn float_rows_that_hold_ternary_values_are_recognised() {
    let values = floats("w_f32");
    let (mut codes_found, mut scales) = (vec![0; COLS], vec![0.0; COLS / hidden::GROUP]);
    for (row, wanted) in codes().chunks_exact(COLS).enumerate() {
        let values = &values[row * COLS..][..COLS];
        assert!(hidden::codes_of_row(values, &mut codes_found, &mut scales));
        assert_eq!(codes_found, wanted);
        assert!(scales.iter().all(|scale| *scale == floats("row_scale_f32")[row]));
    }
    let mut almost = values[..COLS].to_vec();
    almost[300] *= 1.0 + f32::EPSILON;
    assert!(!hidden::codes_of_row(&almost, &mut codes_found, &mut scales));
    almost[300] = f32::INFINITY;
    assert!(!hidden::codes_of_row(&almost, &mut codes_found, &mut scales));
    almost[300] = f32::NAN;
    assert!(!hidden::codes_of_row(&almost, &mut codes_found, &mut scales));
}

#[test]
fn absmean_rounds_half_to_even_around_the_mean() {
    // mean |w| = 1, so ties at ±0.5 go to 0 and ±1.5 is clamped.
    let values = [0.5f32, -0.5, 1.5, -1.5, 0.75, -1.25, 0.0, 2.0];
    let mut master = DenseMatrix::zeroed(2, 4, DenseEncoding::F32).unwrap();
    DenseEncoding::F32.encode(&values, master.bytes_mut());
    let matrix = absmean::quantize(&master).unwrap();
    assert_eq!(matrix.scales(), &KernelScales::Tensor(1.0));
    assert_eq!(decoded(&Matrix::Ternary(matrix)), [0.0, 0.0, 1.0, -1.0, 1.0, -1.0, 0.0, 1.0]);

    master.bytes_mut()[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(absmean::quantize(&master).unwrap_err().code(), "corrupt_file");
}

#[test]
fn rows_of_halves_are_rounded_as_their_singles_are() {
    for cols in [1, 2, 15, 16, 17, 31, 64, 100, 2561] {
        for scale in [6e-8, 1e-5, 1.0, 600.0] {
            // Every sign, subnormal halves, ties and equal magnitudes among them.
            let weights = (0..cols).map(|i| ((i * 37 % 211) as f32 - 105.0) * scale);
            let bytes: Vec<u8> =
                weights.flat_map(|weight| half::f16::from_f32(weight).to_le_bytes()).collect();
            let mut singles = vec![0.0; cols];
            DenseEncoding::F16.decode(&bytes, &mut singles);
            let mut matrix = Int8Matrix::unfilled(2, cols).unwrap();
            matrix.put_row(0, &singles).unwrap();
            matrix.put_half_row(1, &bytes).unwrap();
            assert_eq!(matrix.row(0), matrix.row(1), "{cols} columns of {scale}");
            assert_eq!((matrix.scale(0), matrix.sum(0)), (matrix.scale(1), matrix.sum(1)));
            let scale = matrix.scale(0);
            let inverse = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
            let wanted: Vec<i8> = singles.iter().map(|x| (x * inverse).round_ties_even() as i8).collect();
            assert_eq!(matrix.row(0)[..cols], wanted);
            assert!(matrix.row(0)[cols..].iter().all(|byte| *byte == 0));
            for (place, odd) in [(0, 0x7c00u16), (cols - 1, 0xfc00), (cols / 2, 0x7e01)] {
                let mut bytes = bytes.clone();
                bytes[2 * place..][..2].copy_from_slice(&odd.to_le_bytes());
                assert_eq!(matrix.put_half_row(0, &bytes).unwrap_err().code(), "corrupt_file");
            }
        }
    }
}

#[test]
fn gathered_rows_give_the_matrix_that_single_rows_give() {
    for (rows, cols) in [(1, 1), (4, 16), (7, 100), (8, 64), (13, 130), (130, 257), (256, 512), (300, 1000)] {
        let codes: Vec<u8> =
            (0..rows * cols).map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 13) as u8 & 3).collect();
        // How far apart rows come that lie side by side: quarters of a matrix, halves of a head.
        for step in [1, 2, 4, 64] {
            let mut gathered = TernaryRows::new(rows, cols).unwrap();
            let mut single = TernaryMatrix::unfilled(rows, cols, Scales::Tensor(1.0)).unwrap();
            for row in (0..step).flat_map(|first| (first..rows).step_by(step)) {
                let codes = &codes[row * cols..][..cols];
                gathered.next_row().copy_from_slice(codes);
                gathered.put(row);
                single.put_row(row, codes);
            }
            assert_eq!(gathered.finish().bytes(), single.bytes(), "{rows} × {cols}, {step} apart");
            let mut back = vec![0; cols];
            for (row, codes) in codes.chunks_exact(cols).enumerate() {
                single.read_row(row, &mut back);
                assert_eq!(back, codes, "row {row} of {rows} × {cols}");
            }
        }
    }
}
