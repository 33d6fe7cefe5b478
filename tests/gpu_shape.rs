//! The shape of BitNet b1.58 2B-4T, one layer and its whole vocabulary, within WebGPU's default limits: the
//! embedding is larger than a binding and is cut over several.

#![cfg(not(target_arch = "wasm32"))]

mod common;
mod gpu_support;
mod numbers;

use common::now;
use gpu_support::open;
use numbers::Random;
use sterna::backend::cpu::Cpu;
use sterna::backend::{Backend, KvFormat, TokenIds};
use sterna::generate::sampler::argmax;
use sterna::model::{
    Activation, Layer, LinearInput, LogitRows, ModelConfig, Rope, RopeScaling, Transformer, Weights,
};
use sterna::quant::{Int8Matrix, Matrix, Scales, TernaryMatrix};

fn config() -> ModelConfig {
    ModelConfig {
        architecture: "bitnet-b1.58".into(),
        vocab_size: 128_256,
        hidden_size: 2560,
        intermediate_size: 6912,
        num_layers: 1,
        num_heads: 20,
        num_kv_heads: 5,
        head_dim: 128,
        max_context: 4096,
        norm_eps: 1e-5,
        activation: Activation::Relu2,
        rope: Rope { theta: 500_000.0, scaling: RopeScaling::None },
        sub_norms: true,
        qk_norm: false,
        linear_input: LinearInput::Int8,
    }
}

/// A matrix whose rows repeat a few random ones, which are quicker to make.
fn ternary(rows: usize, cols: usize, random: &mut Random) -> Matrix {
    let kinds: Vec<Vec<u8>> =
        (0..16).map(|_| random.codes(cols).iter().map(|code| code % 3).collect()).collect();
    let mut matrix = TernaryMatrix::unfilled(rows, cols, Scales::Tensor(0.02)).unwrap();
    for row in 0..rows {
        matrix.put_row(row, &kinds[row * 7 % 16]);
    }
    Matrix::Ternary(matrix)
}

fn layer<B: Backend>(backend: &B, config: &ModelConfig) -> Layer<B::Matrix, B::Vector> {
    let mut random = Random::new(31);
    let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
    let mut matrix = |rows, cols| backend.upload_matrix(ternary(rows, cols, &mut random)).unwrap();
    let vector = |len| backend.upload_vector(vec![1.0; len]).unwrap();
    Layer {
        attn_norm: vector(hidden),
        query: matrix(config.query_width(), hidden),
        key: matrix(config.kv_width(), hidden),
        value: matrix(config.kv_width(), hidden),
        query_norm: None,
        key_norm: None,
        attn_sub_norm: Some(vector(config.query_width())),
        attn_output: matrix(hidden, config.query_width()),
        ffn_norm: vector(hidden),
        gate: matrix(ffn, hidden),
        up: matrix(ffn, hidden),
        ffn_sub_norm: Some(vector(ffn)),
        down: matrix(hidden, ffn),
    }
}

/// The embedding, in `parts` matrices; every row is another.
fn embedding(config: &ModelConfig, parts: usize) -> impl Iterator<Item = Matrix> {
    let mut random = Random::new(32);
    let base = random.floats(2 * config.hidden_size);
    let (rows, hidden) = (config.vocab_size / parts, config.hidden_size);
    (0..parts).map(move |part| {
        let mut matrix = Int8Matrix::unfilled(rows, hidden).unwrap();
        for row in 0..rows {
            let shift = (part * rows + row) * 37 % hidden;
            matrix.put_row(row, &base[shift..shift + hidden]).unwrap();
        }
        Matrix::Int8(matrix)
    })
}

fn logits<B: Backend>(backend: B, embedding: B::Matrix) -> Vec<f32> {
    let config = config();
    let layers = vec![layer(&backend, &config)];
    let output_norm = backend.upload_vector(vec![1.0; config.hidden_size]).unwrap();
    let weights = Weights { embedding, output_norm, head: None, layers };
    let model = Transformer::new(backend, config, weights).unwrap();
    let mut cache = model.backend().new_cache(model.cache_shape(KvFormat::F16)).unwrap();
    let mut all = Vec::new();
    for ids in [&[128_000, 3, 70_001][..], &[128_255]] {
        let logits = model.forward(TokenIds::Given(ids), &mut cache, LogitRows::Last).unwrap().unwrap();
        all.extend(now(model.backend().read(&logits)).unwrap());
    }
    all
}

#[test]
fn the_2b_4t_shape_runs_within_default_limits() {
    let Some(gpu) = now(open()) else { return };
    let config = config();
    let parts = embedding(&config, 6).map(|part| gpu.upload_matrix(part).unwrap()).collect();
    let whole = gpu.stack(parts).unwrap();
    let ours = logits(gpu, whole);
    let theirs = logits(Cpu::with_threads(2), embedding(&config, 1).next().unwrap());
    let (vocab, size) = (config.vocab_size, theirs.iter().fold(0.0f32, |max, x| max.max(x.abs())));
    let worst = common::max_difference(&ours, &theirs);
    assert!(worst <= 0.02 * size, "{worst} of {size}");
    for (ours, theirs) in ours.chunks(vocab).zip(theirs.chunks(vocab)) {
        let chosen = argmax(ours) as usize;
        assert!(theirs[argmax(theirs) as usize] - theirs[chosen] <= 0.02 * size);
    }
}
