//! Models of the shape of BitNet b1.58 2B-4T with made-up weights: they cost what the real one costs.

use crate::numbers::Random;
use sterna::backend::Backend;
use sterna::model::{Activation, Layer, LinearInput, ModelConfig, Rope, RopeScaling};
use sterna::quant::{Int8Matrix, Matrix, Scales, TernaryMatrix};

pub fn config(layers: usize) -> ModelConfig {
    ModelConfig {
        architecture: "bitnet-b1.58".into(),
        vocab_size: 128_256,
        hidden_size: 2560,
        intermediate_size: 6912,
        num_layers: layers,
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
pub fn ternary(rows: usize, cols: usize, random: &mut Random) -> Matrix {
    let kinds: Vec<Vec<u8>> =
        (0..16).map(|_| random.codes(cols).iter().map(|code| code % 3).collect()).collect();
    let mut matrix = TernaryMatrix::unfilled(rows, cols, Scales::Tensor(0.02)).unwrap();
    for row in 0..rows {
        matrix.put_row(row, &kinds[row * 7 % 16]);
    }
    Matrix::Ternary(matrix)
}

pub fn layer<B: Backend>(backend: &B, config: &ModelConfig) -> Layer<B::Matrix, B::Vector> {
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
pub fn embedding(config: &ModelConfig, parts: usize) -> impl Iterator<Item = Matrix> {
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
