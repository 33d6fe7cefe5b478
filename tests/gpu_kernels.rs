//! Every kernel of the GPU backend, in every variant, against its plain definition in `backend::cpu::scalar` or
//! the CPU's, on odd sizes. The same file runs natively and, through wasm-pack, in a browser.

mod common;
mod gpu_support;
mod numbers;

use gpu_support::{gpu_test, open, open_variants};
use numbers::{Random, assert_close};
use sterna::backend::cpu::{Cpu, CpuInput, CpuTensor, scalar};
use sterna::backend::gpu::Gpu;
use sterna::backend::{AttentionInput, Backend, CacheShape, KvCache, KvFormat, Norm, RopeAngles, TokenIds};
use sterna::model::{Activation, LinearInput, ModelConfig, Rope, RopeFrequencies, RopeScaling};
use sterna::quant::{DenseEncoding, DenseMatrix, Matrix, Scales, TernaryMatrix};

/// A browser's software GPU takes its time to compile kernels, and there are few odd sizes that it could get
/// wrong where a native one does not.
const IN_BROWSER: bool = cfg!(target_arch = "wasm32");

/// `(rows, cols)`: slab, group and chunk borders, the odd sizes beside them, and more columns than singles sum exactly.
const SHAPES: &[(usize, usize)] = if IN_BROWSER {
    &[(3, 5), (129, 320), (17, 6912)]
} else {
    &[
        (1, 1),
        (3, 5),
        (9, 65),
        (127, 63),
        (129, 320),
        (136, 100),
        (256, 864),
        (300, 1408),
        (17, 6912),
        (9, 40_100),
    ]
};

/// `(heads, kv_heads, head_dim)`
const HEADS: &[(usize, usize, usize)] = if IN_BROWSER {
    &[(6, 1, 128)]
} else {
    &[(4, 2, 32), (3, 3, 6), (6, 1, 128), (20, 5, 64), (20, 1, 256)]
};

async fn linear(gpu: &Gpu, matrix: &Matrix, x: &CpuTensor, kind: LinearInput) -> Vec<f32> {
    let weight = gpu.upload_matrix(matrix.clone()).unwrap();
    let input = gpu.quantize(gpu.tensor(x.width(), x.data()), kind);
    gpu.read(&gpu.linear(&weight, &input)).await.unwrap()
}

gpu_test! {
    async fn ternary_sums_are_exact() {
        for gpu in open_variants().await {
            let mut random = Random::new(1);
            for &(rows, cols) in SHAPES {
                let codes = random.codes(rows * cols);
                let matrix = TernaryMatrix::from_codes(rows, cols, &codes, Scales::Tensor(1.0)).unwrap();
                for tokens in [1, 6] {
                    // Integers up to 127 pass the int8 quantiser unchanged, so the product is an integer.
                    let mut x: Vec<f32> =
                        (0..tokens * cols).map(|_| (random.float() * 127.0).round()).collect();
                    x.iter_mut().step_by(cols).for_each(|x| *x = 127.0);
                    let matrix = Matrix::Ternary(matrix.clone());
                    let x = CpuTensor::from_data(cols, x);
                    let ours = linear(&gpu, &matrix, &x, LinearInput::Int8).await;
                    let input = CpuInput::new(x, LinearInput::Int8);
                    let wanted = Cpu::default().linear(&matrix, &input);
                    // The scale is 127 / 127; a division on a GPU may be off in the last bit.
                    for (ours, wanted) in ours.iter().zip(wanted.data()) {
                        assert_eq!(ours.round(), *wanted, "{rows}×{cols}, {tokens} tokens, {}", gpu.kernel_name());
                    }
                }
            }
        }
    }

    async fn ternary_linears_agree_with_their_definition() {
        for gpu in open_variants().await {
            let mut random = Random::new(2);
            for &(rows, cols) in SHAPES {
                for scales in random.all_scales(rows, cols) {
                    let what = format!("{rows}×{cols} {:?} {}", std::mem::discriminant(&scales), gpu.kernel_name());
                    let codes = random.codes(rows * cols);
                    let matrix = Matrix::Ternary(TernaryMatrix::from_codes(rows, cols, &codes, scales).unwrap());
                    let tokens = [1, 3, 13][random.codes(1)[0] as usize % 3];
                    let x = CpuTensor::from_data(cols, random.floats(tokens * cols));
                    let int8 = linear(&gpu, &matrix, &x, LinearInput::Int8).await;
                    let float = linear(&gpu, &matrix, &x, LinearInput::Float).await;
                    for token in 0..tokens {
                        let own = token * rows..(token + 1) * rows;
                        let wanted = scalar::linear_int8(&matrix, x.row(token));
                        assert_close(&int8[own.clone()], &wanted, 4e-6, &format!("int8 {what} token {token}"));
                        let wanted = scalar::linear(&matrix, x.row(token));
                        assert_close(&float[own], &wanted, 4e-6, &format!("float {what} token {token}"));
                    }
                }
            }
        }
    }

    async fn dense_linears_agree_with_their_definition() {
        for gpu in open_variants().await {
            let mut random = Random::new(4);
            for (rows, cols) in [(1, 1), (5, 7), (33, 100), (20, 576), (200, 33)] {
                let mut matrices =
                    vec![Matrix::Int8(random.int8(rows, cols)), Matrix::Int4(random.int4(rows, cols))];
                for encoding in [DenseEncoding::F32, DenseEncoding::F16, DenseEncoding::BF16] {
                    matrices.push(random.dense(rows, cols, encoding));
                }
                for matrix in matrices {
                    for tokens in [1, 3, 9] {
                        let x = CpuTensor::from_data(cols, random.floats(tokens * cols));
                        let ours = linear(&gpu, &matrix, &x, LinearInput::Float).await;
                        for token in 0..tokens {
                            let wanted = scalar::linear(&matrix, x.row(token));
                            let what = format!("{rows}×{cols}, {tokens} tokens, {}", gpu.kernel_name());
                            assert_close(&ours[token * rows..(token + 1) * rows], &wanted, 4e-6, &what);
                        }
                    }
                }
            }
        }
    }

    async fn matrices_that_came_in_parts_are_one() {
        let Some(gpu) = open().await else { return };
        let mut random = Random::new(12);
        let parts = [70, 64, 9].map(|rows| Matrix::Int8(random.int8(rows, 130)));
        let uploaded = parts.iter().map(|part| gpu.upload_matrix(part.clone()).unwrap()).collect();
        let whole = gpu.stack(uploaded).unwrap();
        let x = random.floats(2 * 130);
        let input = gpu.quantize(gpu.tensor(130, &x), LinearInput::Float);
        let product = gpu.read(&gpu.linear(&whole, &input)).await.unwrap();
        let rows = gpu.read(&gpu.embed(&whole, TokenIds::Given(&[3, 100, 142]), 0)).await.unwrap();
        for (token, x) in x.chunks(130).enumerate() {
            let wanted: Vec<f32> = parts.iter().flat_map(|part| scalar::linear(part, x)).collect();
            assert_close(&product[token * 143..(token + 1) * 143], &wanted, 4e-6, "parts");
        }
        let mut wanted = vec![0.0; 130];
        for (token, (part, row)) in [(0, 3), (1, 30), (2, 8)].into_iter().enumerate() {
            parts[part].decode_row(row, &mut wanted);
            assert_eq!(rows[token * 130..(token + 1) * 130], wanted);
        }
        let ternary = gpu.upload_matrix(random.ternary(8, 130, Scales::Tensor(0.3))).unwrap();
        let error = gpu.stack(vec![ternary, whole]).err().unwrap();
        assert_eq!(error.code(), "invalid_argument");
    }

    async fn several_linears_and_residuals_share_a_dispatch() {
        for gpu in open_variants().await {
            let mut random = Random::new(3);
            let rows = [24, 9, 130];
            let matrices = rows.map(|rows| random.ternary(rows, 70, Scales::Tensor(0.3)));
            let uploaded = matrices.each_ref().map(|matrix| gpu.upload_matrix(matrix.clone()).unwrap());
            for tokens in [1, 5] {
                let x = CpuTensor::from_data(70, random.floats(tokens * 70));
                let input = gpu.quantize(gpu.tensor(70, x.data()), LinearInput::Int8);
                let outs = gpu.linears(uploaded.each_ref(), &input);
                for ((matrix, out), rows) in matrices.iter().zip(&outs).zip(rows) {
                    let ours = gpu.read(out).await.unwrap();
                    for token in 0..tokens {
                        let wanted = scalar::linear_int8(matrix, x.row(token));
                        assert_close(&ours[token * rows..(token + 1) * rows], &wanted, 4e-6, "linears");
                    }
                }
                let residual = random.floats(tokens * 24);
                let mut sum = gpu.tensor(24, &residual);
                gpu.linear_add(&uploaded[0], &input, &mut sum);
                let ours = gpu.read(&sum).await.unwrap();
                for token in 0..tokens {
                    let mut wanted = scalar::linear_int8(&matrices[0], x.row(token));
                    let own = token * 24..(token + 1) * 24;
                    wanted.iter_mut().zip(&residual[own.clone()]).for_each(|(sum, old)| *sum += old);
                    assert_close(&ours[own], &wanted, 4e-6, "residual");
                }
            }
        }
    }

    async fn gate_up_applies_the_activation() {
        for gpu in open_variants().await {
            let mut random = Random::new(7);
            let dense = |random: &mut Random| random.dense(24, 40, DenseEncoding::F32);
            let pairs = [
                (random.ternary(24, 40, Scales::Tensor(0.3)), random.ternary(24, 40, Scales::Tensor(0.3))),
                (dense(&mut random), dense(&mut random)),
                (random.ternary(24, 40, Scales::Tensor(0.3)), dense(&mut random)),
            ];
            for (gate, up) in pairs {
                let (gpu_gate, gpu_up) =
                    (gpu.upload_matrix(gate.clone()).unwrap(), gpu.upload_matrix(up.clone()).unwrap());
                for tokens in [1, 3] {
                    let x = CpuTensor::from_data(40, random.floats(tokens * 40));
                    let input = gpu.quantize(gpu.tensor(40, x.data()), LinearInput::Float);
                    for act in [Activation::Relu2, Activation::Silu] {
                        let ours = gpu.read(&gpu.gate_up(&gpu_gate, &gpu_up, &input, act)).await.unwrap();
                        for token in 0..tokens {
                            let (g, u) = (scalar::linear(&gate, x.row(token)), scalar::linear(&up, x.row(token)));
                            let activate = |g: f32| match act {
                                Activation::Relu2 => g.max(0.0).powi(2),
                                Activation::Silu => g / (1.0 + (-g).exp()),
                            };
                            let wanted: Vec<f32> = g.iter().zip(&u).map(|(g, u)| activate(*g) * u).collect();
                            assert_close(&ours[token * 24..(token + 1) * 24], &wanted, 1e-5, "gate·up");
                        }
                    }
                }
            }
        }
    }

    async fn norms_agree_with_their_definition() {
        let Some(gpu) = open().await else { return };
        let mut random = Random::new(6);
        for width in [1, 7, 64, 2561] {
            let (x, weight) = (random.floats(2 * width), random.floats(width));
            let identity = identity(width.min(40), width);
            let table = gpu.upload_matrix(identity).unwrap();
            let norm = gpu.upload_vector(weight.clone()).unwrap();
            let input = gpu.norm_quantize(
                &gpu.tensor(width, &x),
                Norm { weight: &norm, eps: 1e-5 },
                LinearInput::Float,
            );
            let ours = gpu.read(&gpu.linear(&table, &input)).await.unwrap();
            let shown = width.min(40);
            for token in 0..2 {
                let wanted = scalar::rms_norm(&x[token * width..(token + 1) * width], &weight, 1e-5);
                assert_close(&ours[token * shown..(token + 1) * shown], &wanted[..shown], 4e-6, "RMSNorm");
            }
        }
    }

    async fn embeddings_take_the_rows_asked_for() {
        let Some(gpu) = open().await else { return };
        let mut random = Random::new(5);
        let codes = random.codes(150 * 130);
        let scales = Scales::Group { size: 128, values: random.floats(300) };
        let mut tables = vec![
            Matrix::Ternary(TernaryMatrix::from_codes(150, 130, &codes, scales).unwrap()),
            Matrix::Ternary(TernaryMatrix::from_codes(150, 130, &codes, Scales::Row(random.floats(150))).unwrap()),
            Matrix::Int8(random.int8(150, 130)),
            Matrix::Int4(random.int4(150, 130)),
        ];
        for encoding in [DenseEncoding::F32, DenseEncoding::F16, DenseEncoding::BF16] {
            let mut matrix = DenseMatrix::zeroed(150, 130, encoding).unwrap();
            encoding.encode(&random.floats(150 * 130), matrix.bytes_mut());
            tables.push(Matrix::Dense(matrix));
        }
        for table in tables {
            let uploaded = gpu.upload_matrix(table.clone()).unwrap();
            let ids = [149, 0, 7, 131];
            let ours = gpu.read(&gpu.embed(&uploaded, TokenIds::Given(&ids), 0)).await.unwrap();
            let mut wanted = vec![0.0; 130];
            for (token, id) in ids.into_iter().enumerate() {
                table.decode_row(id as usize, &mut wanted);
                assert_eq!(ours[token * 130..(token + 1) * 130], wanted);
            }
        }
    }

    async fn attention_agrees_with_the_cpu() {
        let Some(gpu) = open().await else { return };
        for &heads in HEADS {
            check_attention(&gpu, heads, STEPS, KvFormat::F32, false, 1e-5).await;
        }
        check_attention(&gpu, (4, 2, 32), STEPS, KvFormat::F32, true, 1e-5).await;
        check_attention(&gpu, (4, 2, 32), STEPS, KvFormat::F16, false, 2e-3).await;
        // A code that falls the other way where two devices round differently is a 127th of its vector's largest.
        check_attention(&gpu, (4, 2, 32), STEPS, KvFormat::Q8, true, 2e-3).await;
        check_attention(&gpu, (3, 3, 6), STEPS, KvFormat::Q8, false, 2e-3).await;
    }

    async fn attention_reaches_over_long_contexts() {
        let Some(gpu) = open().await else { return };
        let steps: &[usize] = if IN_BROWSER { &[900, 200, 1] } else { &[1024, 1024, 1024, 1020, 1, 4, 1, 700, 1] };
        check_attention(&gpu, (2, 1, 8), steps, KvFormat::F32, false, 1e-5).await;
    }

    async fn a_cache_that_no_binding_holds_is_refused() {
        let Some(gpu) = open().await else { return };
        let (heads, head_dim) = (1024, 256);
        let width = heads * head_dim;
        let shape = CacheShape { layers: 1, kv_heads: heads, head_dim, format: KvFormat::F32 };
        let mut cache = gpu.new_cache(shape).unwrap();
        let values = vec![0.0; width];
        let [query, key, value] = gpu.tensors([(width, &values), (width, &values), (width, &values)]);
        let angles = gpu.angles(&RopeFrequencies::new(&rope_config(head_dim)).unwrap(), 0..1);
        let input =
            AttentionInput { layer: 0, query, key, value, query_norm: None, key_norm: None, norm_eps: 1e-6 };
        let error = gpu.attend(input, &angles, &mut cache).err().unwrap();
        assert_eq!(error.code(), "out_of_memory");
    }
}

/// The first `rows` rows of the identity.
fn identity(rows: usize, cols: usize) -> Matrix {
    let mut matrix = DenseMatrix::zeroed(rows, cols, DenseEncoding::F32).unwrap();
    for row in 0..rows {
        let mut values = vec![0.0; cols];
        values[row] = 1.0;
        DenseEncoding::F32.encode(&values, matrix.row_mut(row));
    }
    Matrix::Dense(matrix)
}

/// Tokens of the steps that fill a cache: in chunks and one by one, up to several stretches.
const STEPS: &[usize] = &[1, 3, 60, 1, 200, 40, 1, 1, 300, 1];

/// Attention over caches that are filled in `steps`.
async fn check_attention(
    gpu: &Gpu,
    (heads, kv_heads, head_dim): (usize, usize, usize),
    steps: &[usize],
    format: KvFormat,
    has_norms: bool,
    tolerance: f32,
) {
    let mut random = Random::new(8);
    let shape = CacheShape { layers: 2, kv_heads, head_dim, format };
    let frequencies = RopeFrequencies::new(&rope_config(head_dim)).unwrap();
    let (query_norm, key_norm) = (random.floats(head_dim), random.floats(head_dim));
    let gpu_norms = [&query_norm, &key_norm].map(|norm| gpu.upload_vector(norm.clone()).unwrap());
    let cpu_norms = [query_norm, key_norm].map(|norm| Cpu::default().upload_vector(norm).unwrap());
    let cpu = Cpu::default();
    let (mut ours, mut theirs) = (gpu.new_cache(shape).unwrap(), cpu.new_cache(shape).unwrap());
    for &tokens in steps {
        let start = ours.len();
        let [query, key, value] = [heads, kv_heads, kv_heads]
            .map(|heads| CpuTensor::from_data(heads * head_dim, random.floats(tokens * heads * head_dim)));
        let [gpu_query, gpu_key, gpu_value] =
            gpu.tensors([&query, &key, &value].map(|x| (x.width(), x.data())));
        // The position comes with a step's input.
        let table = gpu.upload_matrix(identity(1, 4)).unwrap();
        gpu.embed(&table, TokenIds::Given(&vec![0; tokens]), start);
        let gpu_input = AttentionInput {
            layer: 1,
            query: gpu_query,
            key: gpu_key,
            value: gpu_value,
            query_norm: has_norms.then_some(&gpu_norms[0]),
            key_norm: has_norms.then_some(&gpu_norms[1]),
            norm_eps: 1e-6,
        };
        let angles = gpu.angles(&frequencies, start..start + tokens);
        let attended = gpu.attend(gpu_input, &angles, &mut ours).unwrap();
        gpu.commit(&mut ours, tokens);
        let ours = gpu.read(&attended).await.unwrap();

        let cpu_input = AttentionInput {
            layer: 1,
            query,
            key,
            value,
            query_norm: has_norms.then_some(&cpu_norms[0]),
            key_norm: has_norms.then_some(&cpu_norms[1]),
            norm_eps: 1e-6,
        };
        let angles: RopeAngles = cpu.angles(&frequencies, start..start + tokens);
        let wanted = cpu.attend(cpu_input, &angles, &mut theirs).unwrap();
        cpu.commit(&mut theirs, tokens);
        let what = format!("{heads} heads, {kv_heads} kv, {head_dim}, {tokens} tokens at {start}");
        assert_close(&ours, wanted.data(), tolerance, &what);
    }
}

fn rope_config(head_dim: usize) -> ModelConfig {
    ModelConfig {
        architecture: "test".into(),
        vocab_size: 1,
        hidden_size: head_dim,
        intermediate_size: 1,
        num_layers: 1,
        num_heads: 1,
        num_kv_heads: 1,
        head_dim,
        max_context: 8192,
        norm_eps: 1e-6,
        activation: Activation::Silu,
        rope: Rope { theta: 10_000.0, scaling: RopeScaling::None },
        sub_norms: false,
        qk_norm: false,
        linear_input: LinearInput::Float,
    }
}
