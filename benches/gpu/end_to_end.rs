//! Decoding and prefill of a whole model, as the engine drives them: chosen tokens feed the next step on the GPU,
//! the host reads ids behind.

use super::now;
use crate::shape;
use std::collections::VecDeque;
use std::time::Instant;
use sterna::backend::gpu::{DeviceOptions, Gpu};
use sterna::backend::{Backend, KvFormat, TokenIds};
use sterna::generate::sampler::SamplerOptions;
use sterna::model::{LogitRows, Transformer, Weights};

const PROMPT: usize = 128;
const TOKENS: usize = 32;

pub fn measure(layers: usize, card: f64) {
    let gpu = now(Gpu::open(&DeviceOptions::default(), None)).unwrap();
    let config = shape::config(layers);
    now(gpu.prepare(&config, KvFormat::F16)).unwrap();
    println!("kernels: {}", gpu.kernel_name());
    gpu.rejected().iter().for_each(|wrong| println!("not used: {wrong}"));

    let parts = shape::embedding(&config, 6).map(|part| gpu.upload_matrix(part).unwrap()).collect();
    let weights = Weights {
        embedding: gpu.stack(parts).unwrap(),
        output_norm: gpu.upload_vector(vec![1.0; config.hidden_size]).unwrap(),
        head: None,
        layers: (0..layers).map(|_| shape::layer(&gpu, &config)).collect(),
    };
    let model = Transformer::new(gpu.clone(), config.clone(), weights).unwrap();
    let ids: Vec<u32> = (0..PROMPT as u32).map(|id| id * 997 % config.vocab_size as u32).collect();

    // Everything is compiled in the first round.
    let mut speeds = [0.0; 2];
    for _ in 0..2 {
        speeds = run(&gpu, &model, &ids);
    }
    let [prefill, decode] = speeds;
    let bytes = token_bytes(&config);
    println!(
        "decode  {:8.2} ms a token, {:6.1} tokens/s; {:.0} MB of weights a token, {:.1} GB/s ({:.0} % of copying)",
        1e3 * decode,
        1.0 / decode,
        bytes / 1e6,
        bytes / decode / 1e9,
        100.0 * bytes / decode / card,
    );
    println!(
        "prefill {:8.2} ms a token, {:6.1} tokens/s, {:.1}× faster than decoding",
        1e3 * prefill,
        1.0 / prefill,
        decode / prefill
    );
}

/// Seconds a token of the prompt, and of decoding after it.
fn run(gpu: &Gpu, model: &Transformer<Gpu>, ids: &[u32]) -> [f64; 2] {
    let mut cache = gpu.new_cache(model.cache_shape(KvFormat::F16)).unwrap();
    let mut sampler = gpu.new_sampler(SamplerOptions::greedy(), &[], model.config().vocab_size).unwrap();
    let start = Instant::now();
    let logits = model.forward(TokenIds::Given(ids), &mut cache, LogitRows::Last).unwrap().unwrap();
    let mut choice = gpu.choose(logits, ids.len(), &mut sampler);
    now(gpu.chosen(choice.clone())).unwrap();
    let prefill = start.elapsed().as_secs_f64() / ids.len() as f64;

    let mut in_flight = VecDeque::new();
    let before = gpu.counters();
    let start = Instant::now();
    for _ in 0..TOKENS {
        let logits = model.forward(TokenIds::Chosen(&choice), &mut cache, LogitRows::Last).unwrap().unwrap();
        choice = gpu.choose(logits, 1, &mut sampler);
        in_flight.push_back(choice.clone());
        if in_flight.len() >= Gpu::IN_FLIGHT {
            now(gpu.chosen(in_flight.pop_front().unwrap())).unwrap();
        }
    }
    for choice in in_flight {
        now(gpu.chosen(choice)).unwrap();
    }
    let decode = start.elapsed().as_secs_f64() / TOKENS as f64;
    let after = gpu.counters();
    println!(
        "decode  {:.1} dispatches, {:.1} submits, {:.1} bytes read back a token",
        (after.dispatches - before.dispatches) as f64 / TOKENS as f64,
        (after.submits - before.submits) as f64 / TOKENS as f64,
        (after.bytes_read - before.bytes_read) as f64 / TOKENS as f64,
    );
    [prefill, decode]
}

/// Weights that a token reads: two bits each in layers, a byte in the head.
fn token_bytes(config: &sterna::model::ModelConfig) -> f64 {
    let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
    let layer = 2 * hidden * config.query_width() + 2 * hidden * config.kv_width() + 3 * hidden * ffn;
    (config.num_layers * layer) as f64 / 4.0 + (config.vocab_size * hidden) as f64
}
