//! The shape of BitNet b1.58 2B-4T, one layer and its whole vocabulary, within WebGPU's default limits: the
//! embedding is larger than a binding and is cut over several. And how many dispatches a layer takes.

#![cfg(not(target_arch = "wasm32"))]

mod common;
mod gpu_support;
mod numbers;
#[path = "../benches/gpu/shape.rs"]
mod shape;

use common::now;
use gpu_support::{PLAIN_TEAM, open, open_with};
use numbers::Random;
use sterna::backend::cpu::Cpu;
use sterna::backend::gpu::{DeviceOptions, Gpu, InputPreparation, Variants};
use sterna::backend::{Backend, KvFormat, TokenIds};
use sterna::generate::sampler::argmax;
use sterna::model::{LinearInput, LogitRows, ModelConfig, Transformer, Weights};
use sterna::quant::Matrix;

fn logits<B: Backend>(backend: B, embedding: B::Matrix) -> Vec<f32> {
    let config = shape::config(1);
    let layers = vec![shape::layer(&backend, &config)];
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
    let config = shape::config(1);
    let parts = shape::embedding(&config, 6).map(|part| gpu.upload_matrix(part).unwrap()).collect();
    let whole = gpu.stack(parts).unwrap();
    let ours = logits(gpu, whole);
    let theirs = logits(Cpu::with_threads(2), shape::embedding(&config, 1).next().unwrap());
    let (vocab, size) = (config.vocab_size, theirs.iter().fold(0.0f32, |max, x| max.max(x.abs())));
    let worst = common::max_difference(&ours, &theirs);
    assert!(worst <= 0.02 * size, "{worst} of {size}");
    for (ours, theirs) in ours.chunks(vocab).zip(theirs.chunks(vocab)) {
        let chosen = argmax(ours) as usize;
        assert!(theirs[argmax(theirs) as usize] - theirs[chosen] <= 0.02 * size);
    }
}

/// A context for which attention is divided, and a width of the feed-forward network that in three digits is too
/// much for the memory of a workgroup.
const LONG_CONTEXT: usize = 300;
const WIDE: usize = 4096;

fn dispatches_of_a_token(gpu: &Gpu, config: &ModelConfig, context: usize) -> usize {
    let mut random = Random::new(33);
    let embedding =
        gpu.upload_matrix(Matrix::Int8(random.int8(config.vocab_size, config.hidden_size))).unwrap();
    let weights = Weights {
        embedding,
        output_norm: gpu.upload_vector(vec![1.0; config.hidden_size]).unwrap(),
        head: None,
        layers: (0..config.num_layers).map(|_| shape::layer(gpu, config)).collect(),
    };
    let model = Transformer::new(gpu.clone(), config.clone(), weights).unwrap();
    let mut cache = gpu.new_cache(model.cache_shape(KvFormat::F16)).unwrap();
    model.forward(TokenIds::Given(&vec![1; context]), &mut cache, LogitRows::None).unwrap();
    let before = gpu.counters().dispatches;
    model.forward(TokenIds::Given(&[2]), &mut cache, LogitRows::Last).unwrap();
    gpu.counters().dispatches - before
}

#[test]
fn a_layer_takes_at_most_eight_dispatches_in_every_form() {
    for preparation in [InputPreparation::Inline, InputPreparation::Separate] {
        let forced = Variants { preparation, ..PLAIN_TEAM };
        let options = DeviceOptions { default_limits: true, ..Default::default() };
        let Some(gpu) = now(open_with(&options, Some(forced))) else { return };
        for linear_input in [LinearInput::Int8, LinearInput::Float] {
            let of = |layers, context| {
                let config = ModelConfig {
                    vocab_size: 64,
                    hidden_size: 256,
                    intermediate_size: WIDE,
                    num_heads: 4,
                    num_kv_heads: 2,
                    head_dim: 64,
                    linear_input,
                    ..shape::config(layers)
                };
                dispatches_of_a_token(&gpu, &config, context)
            };
            let most = match (preparation, linear_input) {
                (InputPreparation::Inline, LinearInput::Int8) => 5,
                (InputPreparation::Inline, LinearInput::Float) => 6,
                (InputPreparation::Separate, LinearInput::Int8) => 6,
                (InputPreparation::Separate, LinearInput::Float) => 7,
            };
            for (context, more) in [(10, 0), (LONG_CONTEXT, 1)] {
                let layer = of(2, context) - of(1, context);
                assert!(layer <= most + more, "{layer} dispatches, {forced}, {linear_input:?} at {context}");
            }
        }
    }
}
