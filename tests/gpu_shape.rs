//! The shape of BitNet b1.58 2B-4T, one layer and its whole vocabulary, within WebGPU's default limits: the
//! embedding is larger than a binding and is cut over several.

#![cfg(not(target_arch = "wasm32"))]

mod common;
mod gpu_support;
mod numbers;
#[path = "../benches/gpu/shape.rs"]
mod shape;

use common::now;
use gpu_support::open;
use sterna::backend::cpu::Cpu;
use sterna::backend::{Backend, KvFormat, TokenIds};
use sterna::generate::sampler::argmax;
use sterna::model::{LogitRows, Transformer, Weights};

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
