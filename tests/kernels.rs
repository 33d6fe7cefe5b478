//! Every kernel of the CPU backend against its plain definition in `backend::cpu::scalar`, on odd sizes.
//! The same file runs natively and, through wasm-pack, in a browser, where the SIMD kernels are.

mod numbers;

use numbers::{Random, assert_close};
use sterna::backend::cpu::{Cpu, CpuInput, CpuTensor, scalar};
use sterna::backend::{AttentionInput, Backend, CacheShape, KvCache, KvFormat, Norm, RopeAngles, TokenIds};
use sterna::model::{Activation, LinearInput};
use sterna::quant::{DenseEncoding, DenseMatrix, Int4Matrix, Int8Matrix, Matrix, Scales, TernaryMatrix};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

/// `(rows, cols)`: slab, group and chunk borders, and the odd sizes beside them.
const SHAPES: [(usize, usize); 12] = [
    (1, 1),
    (3, 5),
    (8, 64),
    (9, 65),
    (127, 63),
    (128, 128),
    (129, 320),
    (136, 100),
    (256, 864),
    (300, 1408),
    (64, 2560),
    (17, 6912),
];

#[test]
fn ternary_linear_sums_are_exact() {
    let mut random = Random::new(1);
    for (rows, cols) in SHAPES {
        let codes = random.codes(rows * cols);
        let matrix = TernaryMatrix::from_codes(rows, cols, &codes, Scales::Tensor(1.0)).unwrap();
        // Integers up to 127 pass the int8 quantiser unchanged, so the product must be an exact integer.
        let mut x: Vec<f32> = (0..cols).map(|_| (random.float() * 127.0).round()).collect();
        x[0] = 127.0;
        let input = CpuInput::new(CpuTensor::from_data(cols, x.clone()), LinearInput::Int8);
        let ours = Cpu::default().linear(&Matrix::Ternary(matrix), &input);
        for (row, codes) in codes.chunks(cols).enumerate() {
            let sum: i64 = codes.iter().zip(&x).map(|(code, x)| (i64::from(*code) - 1) * *x as i64).sum();
            assert_eq!(ours.row(0)[row], sum as f32, "{rows}×{cols} row {row}");
        }
    }
}

#[test]
fn ternary_linear_agrees_with_its_definition() {
    let mut random = Random::new(2);
    for (rows, cols) in SHAPES {
        for scales in random.all_scales(rows, cols) {
            let what = format!("{rows}×{cols} {:?}", std::mem::discriminant(&scales));
            let codes = random.codes(rows * cols);
            let matrix = Matrix::Ternary(TernaryMatrix::from_codes(rows, cols, &codes, scales).unwrap());
            // One token, fewer than a tile of vectors, several tiles and a rest.
            let tokens = [1, 3, 13][random.codes(1)[0] as usize % 3];
            let x = random.tensor(tokens, cols);
            let int8 = Cpu::default().linear(&matrix, &CpuInput::new(x.clone(), LinearInput::Int8));
            let float = Cpu::default().linear(&matrix, &CpuInput::new(x.clone(), LinearInput::Float));
            for token in 0..tokens {
                let wanted = scalar::linear_int8(&matrix, x.row(token));
                assert_close(int8.row(token), &wanted, 2e-6, &format!("int8 {what}"));
                let wanted = scalar::linear(&matrix, x.row(token));
                assert_close(float.row(token), &wanted, 2e-6, &format!("float {what}"));
            }
        }
    }
}

#[test]
fn ternary_linear_survives_the_largest_codes_and_activations() {
    let (rows, cols) = (8, 16384);
    let matrix = TernaryMatrix::from_codes(rows, cols, &vec![3; rows * cols], Scales::Tensor(1.0)).unwrap();
    let matrix = Matrix::Ternary(matrix);
    for kind in [LinearInput::Int8, LinearInput::Float] {
        for value in [1.0, -1.0] {
            let x = CpuTensor::from_data(cols, vec![value; cols]);
            let ours = Cpu::default().linear(&matrix, &CpuInput::new(x, kind));
            assert_close(ours.row(0), &[2.0 * value * cols as f32; 8], 1e-6, "extreme values");
        }
    }
}

#[test]
fn activations_that_are_zero_or_tiny_stay_finite() {
    let matrix = TernaryMatrix::from_codes(8, 64, &[2; 512], Scales::Tensor(1.0)).unwrap();
    let matrix = Matrix::Ternary(matrix);
    for kind in [LinearInput::Int8, LinearInput::Float] {
        for value in [0.0, 1e-30, f32::MIN_POSITIVE] {
            let x = CpuTensor::from_data(64, vec![value; 64]);
            assert!(
                Cpu::default().linear(&matrix, &CpuInput::new(x, kind)).data().iter().all(|y| y.is_finite())
            );
        }
    }
}

#[test]
fn linear_add_adds_to_the_residual() {
    let mut random = Random::new(3);
    let codes = random.codes(20 * 70);
    let matrix = Matrix::Ternary(TernaryMatrix::from_codes(20, 70, &codes, Scales::Tensor(0.5)).unwrap());
    let input = CpuInput::new(random.tensor(2, 70), LinearInput::Int8);
    let product = Cpu::default().linear(&matrix, &input);
    let residual = random.tensor(2, 20);
    let mut sum = residual.clone();
    Cpu::default().linear_add(&matrix, &input, &mut sum);
    let wanted: Vec<f32> = residual.data().iter().zip(product.data()).map(|(a, b)| a + b).collect();
    assert_close(sum.data(), &wanted, 1e-6, "residual");
}

#[test]
fn dense_linear_agrees_with_its_definition() {
    let mut random = Random::new(4);
    for (rows, cols) in [(1, 1), (5, 7), (33, 100), (20, 576)] {
        for encoding in [DenseEncoding::F32, DenseEncoding::F16, DenseEncoding::BF16] {
            let mut matrix = DenseMatrix::zeroed(rows, cols, encoding).unwrap();
            let values = random.floats(rows * cols);
            let bytes: Vec<u8> = match encoding {
                DenseEncoding::F16 => {
                    values.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect()
                }
                DenseEncoding::BF16 => {
                    values.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect()
                }
                _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            matrix.bytes_mut().copy_from_slice(&bytes);
            let matrix = Matrix::Dense(matrix);
            for tokens in [1, 3] {
                let x = random.tensor(tokens, cols);
                let ours = Cpu::default().linear(&matrix, &CpuInput::new(x.clone(), LinearInput::Float));
                for token in 0..tokens {
                    let wanted = scalar::linear(&matrix, x.row(token));
                    assert_close(ours.row(token), &wanted, 2e-6, &format!("{encoding:?} {rows}×{cols}"));
                }
            }
        }
    }
}

/// Rows of random bytes whose scale is `scale`.
fn int8_matrix(rows: usize, cols: usize, scale: f32, random: &mut Random) -> Int8Matrix {
    let mut matrix = Int8Matrix::unfilled(rows, cols).unwrap();
    for row in 0..rows {
        let mut weights: Vec<f32> = (0..cols).map(|_| (random.float() * 127.0).round() * scale).collect();
        weights[row % cols] = 127.0 * scale;
        matrix.put_row(row, &weights).unwrap();
    }
    matrix
}

#[test]
fn int8_rows_give_exact_sums() {
    let mut random = Random::new(10);
    for (rows, cols) in [(1, 1), (3, 5), (64, 64), (67, 100), (130, 576), (5, 2560), (9, 4100)] {
        let matrix = int8_matrix(rows, cols, 1.0, &mut random);
        // Integers up to 8191 pass the rounding of activations unchanged.
        let mut x: Vec<f32> = (0..cols).map(|_| (random.float() * 8191.0).round()).collect();
        x[0] = 8191.0;
        let input = CpuInput::new(CpuTensor::from_data(cols, x.clone()), LinearInput::Float);
        let wanted: Vec<f32> = (0..rows)
            .map(|row| {
                let products = matrix.row(row).iter().zip(&x).map(|(w, x)| i64::from(*w) * *x as i64);
                products.sum::<i64>() as f32
            })
            .collect();
        assert_eq!(Cpu::default().linear(&Matrix::Int8(matrix), &input).row(0), wanted, "{rows}×{cols}");
    }
}

#[test]
fn int8_rows_agree_with_their_definition() {
    let mut random = Random::new(11);
    for (rows, cols) in [(7, 33), (200, 576), (20, 2560)] {
        let matrix = Matrix::Int8(int8_matrix(rows, cols, 0.01, &mut random));
        let x = random.tensor(3, cols);
        let ours = Cpu::default().linear(&matrix, &CpuInput::new(x.clone(), LinearInput::Float));
        for token in 0..3 {
            let wanted = scalar::linear(&matrix, x.row(token));
            assert_close(ours.row(token), &wanted, 2e-4, &format!("8-bit {rows}×{cols}"));
        }
    }
}

#[test]
fn int8_rows_survive_the_largest_weights_and_activations() {
    for (sign, cols) in [(1.0, 16384), (-1.0, 16384)] {
        let mut matrix = Int8Matrix::unfilled(1, cols).unwrap();
        matrix.put_row(0, &vec![sign; cols]).unwrap();
        let x = CpuInput::new(CpuTensor::from_data(cols, vec![2.0; cols]), LinearInput::Float);
        let ours = Cpu::default().linear(&Matrix::Int8(matrix), &x);
        assert_close(ours.row(0), &[2.0 * sign * cols as f32], 1e-6, "extreme values");
    }
}

#[test]
fn int4_rows_agree_with_their_definition() {
    let mut random = Random::new(12);
    for (rows, cols) in [(1, 1), (3, 5), (7, 33), (64, 64), (67, 100), (200, 576), (20, 2560), (9, 4100)] {
        let matrix = Matrix::Int4(random.int4(rows, cols));
        let x = random.tensor(3, cols);
        let ours = Cpu::default().linear(&matrix, &CpuInput::new(x.clone(), LinearInput::Float));
        for token in 0..3 {
            let wanted = scalar::linear(&matrix, x.row(token));
            assert_close(ours.row(token), &wanted, 2e-4, &format!("4-bit {rows}×{cols}"));
        }
    }
}

#[test]
fn int4_rows_survive_the_largest_weights_and_activations() {
    let cols = 16384;
    for weight in [1.0, -1.0] {
        for value in [2.0, -2.0] {
            let mut matrix = Int4Matrix::unfilled(1, cols).unwrap();
            matrix.put_row(0, &vec![weight; cols]).unwrap();
            let x = CpuInput::new(CpuTensor::from_data(cols, vec![value; cols]), LinearInput::Float);
            let ours = Cpu::default().linear(&Matrix::Int4(matrix), &x);
            assert_close(ours.row(0), &[weight * value * cols as f32], 1e-5, "extreme values");
        }
    }
}

#[test]
fn embedding_takes_the_rows_asked_for() {
    let mut random = Random::new(5);
    let codes = random.codes(50 * 130);
    let scales = Scales::Group { size: 128, values: random.floats(100) };
    let table = Matrix::Ternary(TernaryMatrix::from_codes(50, 130, &codes, scales).unwrap());
    let out = Cpu::default().embed(&table, TokenIds::Given(&[49, 0, 7]), 0);
    let mut wanted = vec![0.0; 130];
    for (token, id) in [49usize, 0, 7].into_iter().enumerate() {
        table.decode_row(id, &mut wanted);
        assert_eq!(out.row(token), wanted);
    }
}

fn identity(width: usize) -> Matrix {
    let mut matrix = DenseMatrix::zeroed(width, width, DenseEncoding::F32).unwrap();
    for row in 0..width {
        let mut values = vec![0.0; width];
        values[row] = 1.0;
        DenseEncoding::F32.encode(&values, matrix.row_mut(row));
    }
    Matrix::Dense(matrix)
}

#[test]
fn rms_norm_agrees_with_its_definition() {
    let mut random = Random::new(6);
    for width in [1, 7, 64, 513] {
        let (x, weight) = (random.tensor(2, width), random.floats(width));
        let cpu = Cpu::default();
        let norm = cpu.upload_vector(weight.clone()).unwrap();
        let norm = Norm { weight: &norm, eps: 1e-5 };
        let ours = cpu.linear(&identity(width), &cpu.norm_quantize(&x, norm, LinearInput::Float));
        for token in 0..2 {
            let wanted = scalar::rms_norm(x.row(token), &weight, 1e-5);
            assert_close(ours.row(token), &wanted, 2e-6, "RMSNorm");
        }
    }
}

#[test]
fn gate_up_applies_the_activation() {
    let mut random = Random::new(7);
    let mut matrix = || {
        let codes = random.codes(24 * 40);
        Matrix::Ternary(TernaryMatrix::from_codes(24, 40, &codes, Scales::Tensor(0.3)).unwrap())
    };
    let (gate, up) = (matrix(), matrix());
    let x = random.tensor(2, 40);
    let input = CpuInput::new(x.clone(), LinearInput::Float);
    let relu2 = Cpu::default().gate_up(&gate, &up, &input, Activation::Relu2);
    let silu = Cpu::default().gate_up(&gate, &up, &input, Activation::Silu);
    for token in 0..2 {
        let (g, u) = (scalar::linear(&gate, x.row(token)), scalar::linear(&up, x.row(token)));
        let wanted: Vec<f32> = g.iter().zip(&u).map(|(g, u)| g.max(0.0).powi(2) * u).collect();
        assert_close(relu2.row(token), &wanted, 5e-6, "relu²");
        let wanted: Vec<f32> = g.iter().zip(&u).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
        assert_close(silu.row(token), &wanted, 5e-6, "SiLU");
    }
}

/// Attention over a cache filled in chunks, where others were that were forgotten, without rotation (all angles zero).
fn check_attention(heads: usize, kv_heads: usize, head_dim: usize, format: KvFormat, tolerance: f32) {
    let mut random = Random::new(8);
    let shape = CacheShape { layers: 2, kv_heads, head_dim, format };
    let mut cache = Cpu::default().new_cache(shape).unwrap();
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for (tokens, is_kept) in
        [(70, false), (1, true), (3, true), (60, true), (9, false), (70, true), (1, true)]
    {
        let query = random.tensor(tokens, heads * head_dim);
        let key = random.tensor(tokens, kv_heads * head_dim);
        let value = random.tensor(tokens, kv_heads * head_dim);
        let start = cache.len();
        for token in 0..tokens {
            keys.push(key.row(token).to_vec());
            values.push(value.row(token).to_vec());
        }
        let half = tokens * head_dim / 2;
        let angles = RopeAngles { cos: vec![1.0; half], sin: vec![0.0; half] };
        let input = AttentionInput {
            layer: 1,
            query: query.clone(),
            key,
            value,
            query_norm: None,
            key_norm: None,
            norm_eps: 1e-6,
        };
        let ours = Cpu::default().attend(input, &angles, &mut cache).unwrap();
        if is_kept {
            Cpu::default().commit(&mut cache, tokens);
        }
        for token in 0..tokens {
            for head in 0..heads {
                let kv_head = head / (heads / kv_heads);
                let of_head = |rows: &[Vec<f32>]| -> Vec<Vec<f32>> {
                    let columns = kv_head * head_dim..(kv_head + 1) * head_dim;
                    rows[..=start + token].iter().map(|row| row[columns.clone()].to_vec()).collect()
                };
                let columns = head * head_dim..(head + 1) * head_dim;
                let query = &query.row(token)[columns.clone()];
                let wanted = scalar::attention(query, &of_head(&keys), &of_head(&values));
                let what = format!("{format:?} attention of {heads} heads, width {head_dim}");
                assert_close(&ours.row(token)[columns], &wanted, tolerance, &what);
            }
        }
        if !is_kept {
            keys.truncate(start);
            values.truncate(start);
        }
    }
}

#[test]
fn attention_agrees_with_its_definition() {
    check_attention(4, 2, 32, KvFormat::F32, 5e-6);
    check_attention(3, 3, 6, KvFormat::F32, 5e-6);
    check_attention(6, 1, 128, KvFormat::F32, 5e-6);
    check_attention(5, 1, 20, KvFormat::F32, 5e-6);
    check_attention(4, 2, 32, KvFormat::F16, 2e-3);
    check_attention(5, 1, 20, KvFormat::F16, 2e-3);
    for (heads, kv_heads, head_dim) in [(4, 2, 32), (3, 3, 6), (6, 1, 128), (5, 1, 20), (2, 1, 256)] {
        check_attention(heads, kv_heads, head_dim, KvFormat::Q16, 1e-3);
        check_attention(heads, kv_heads, head_dim, KvFormat::Q8, 2e-2);
    }
}

/// Attention where all keys, values and queries are as large as can be, and one where nothing weighs anything.
#[test]
fn sums_of_rounded_attention_do_not_overflow() {
    for (format, head_dim) in [(KvFormat::Q16, 128), (KvFormat::Q16, 264), (KvFormat::Q8, 128)] {
        let shape = CacheShape { layers: 1, kv_heads: 1, head_dim, format };
        for size in [1e4, 1e-4, 0.0] {
            let mut cache = Cpu::default().new_cache(shape).unwrap();
            let rows = |tokens| CpuTensor::from_data(head_dim, vec![size; tokens * head_dim]);
            for tokens in [200, 1] {
                let half = tokens * head_dim / 2;
                let angles = RopeAngles { cos: vec![1.0; half], sin: vec![0.0; half] };
                let input = AttentionInput {
                    layer: 0,
                    query: rows(tokens),
                    key: rows(tokens),
                    value: rows(tokens),
                    query_norm: None,
                    key_norm: None,
                    norm_eps: 1e-6,
                };
                let out = Cpu::default().attend(input, &angles, &mut cache).unwrap();
                Cpu::default().commit(&mut cache, tokens);
                // All positions weigh the same, and the values are all one.
                let wanted = vec![size; out.data().len()];
                assert_close(out.data(), &wanted, 3e-4, &format!("{format:?} attention of {size}"));
            }
        }
    }
}

#[test]
fn a_truncated_cache_forgets() {
    let mut random = Random::new(9);
    let shape = CacheShape { layers: 1, kv_heads: 1, head_dim: 8, format: KvFormat::F32 };
    let (first, second) = (random.tensor(5, 8), random.tensor(2, 8));
    let run = |cache: &mut _, x: &CpuTensor| {
        let half = x.tokens() * 4;
        let angles = RopeAngles { cos: vec![1.0; half], sin: vec![0.0; half] };
        let input = AttentionInput {
            layer: 0,
            query: x.clone(),
            key: x.clone(),
            value: x.clone(),
            query_norm: None,
            key_norm: None,
            norm_eps: 1e-6,
        };
        let out = Cpu::default().attend(input, &angles, cache).unwrap();
        Cpu::default().commit(cache, x.tokens());
        out
    };
    let mut fresh = Cpu::default().new_cache(shape).unwrap();
    let wanted = run(&mut fresh, &second);
    let mut cache = Cpu::default().new_cache(shape).unwrap();
    run(&mut cache, &first);
    cache.truncate(0);
    assert_eq!(run(&mut cache, &second), wanted);
}
