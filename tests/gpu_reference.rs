//! Every reference checkpoint on the GPU against the logits of its model's own implementation. The same file
//! runs natively (lavapipe on a machine without a GPU) and, through wasm-pack, in a browser.

mod common;
mod gpu_support;

use common::{Case, Difference, Expectation, compare, load_case, tensor_f32, tensor_ids};
use gpu_support::{gpu_test, open};
use sterna::backend::KvFormat;
use sterna::backend::gpu::Gpu;
use sterna::engine::Engine;
use sterna::generate::Session;
use sterna::model::LogitRows;

async fn all_logits(engine: &Engine<Gpu>, ids: &[u32], format: KvFormat, chunk: usize) -> Vec<f32> {
    let model = engine.transformer();
    let mut session = Session::new(model, format).unwrap();
    let mut logits = Vec::new();
    for ids in ids.chunks(chunk) {
        logits.extend(session.advance(model, ids, LogitRows::All).await.unwrap().unwrap());
    }
    logits
}

/// Compares a pass in chunks of `chunk` tokens with the reference.
async fn check_logits(engine: &Engine<Gpu>, case: &Case, length: usize, chunk: usize) {
    let vocab = engine.config().vocab_size;
    let ids = tensor_ids(case.logits, &format!("ids{length}"));
    let wanted = tensor_f32(case.logits, &format!("logits{length}_{}", case.variant));
    let ours = all_logits(engine, &ids, KvFormat::F32, chunk).await;
    let Difference { max, mean, argmax_agreement } = compare(&ours, &wanted, vocab);
    let what = format!("{}, {length} tokens in chunks of {chunk}: max |Δ| {max}, mean {mean}", case.name);
    match (case.expect, length) {
        (Expectation::Exact, _) | (Expectation::MayFlip, 16) => {
            assert!(max <= 1e-3 && argmax_agreement == 1.0, "{what}");
        }
        (Expectation::MayFlip, _) => {
            assert!(max <= 0.4 && mean <= 0.05 && argmax_agreement >= 0.95, "{what}");
        }
        (Expectation::HalfScales, _) => assert!(max <= 0.006 && argmax_agreement == 1.0, "{what}"),
    }
}

gpu_test! {
    async fn logits_agree_with_the_reference_implementation() {
        let Some(gpu) = open().await else { return };
        for case in common::CASES {
            let engine = load_case(gpu.clone(), case).await;
            for (length, chunk) in [(16, 16), (64, 64), (16, 1), (64, 7)] {
                check_logits(&engine, case, length, chunk).await;
            }
        }
    }

    async fn half_precision_kv_stays_within_its_tolerance() {
        let Some(gpu) = open().await else { return };
        for case in common::CASES.iter().filter(|case| case.expect == Expectation::Exact) {
            let engine = load_case(gpu.clone(), case).await;
            let ids = tensor_ids(case.logits, "ids64");
            let wanted = tensor_f32(case.logits, &format!("logits64_{}", case.variant));
            let ours = all_logits(&engine, &ids, KvFormat::F16, 64).await;
            let Difference { max, mean, argmax_agreement } =
                compare(&ours, &wanted, engine.config().vocab_size);
            assert!(max <= 0.4 && mean <= 0.05, "{}: max |Δ| {max}, mean {mean}", case.name);
            assert!(argmax_agreement >= 0.9, "{}: argmax {argmax_agreement}", case.name);
        }
    }
}
