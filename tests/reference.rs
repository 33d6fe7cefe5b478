//! Every reference checkpoint against the logits of its model's own implementation (transformers, f32;
//! see tools/reference/gen_ref.py). The same file runs natively and, through wasm-pack, in a browser.

mod common;

use common::{Case, Difference, Expectation, compare, load, max_difference, now, tensor_f32, tensor_ids};
use sterna::backend::cpu::Cpu;
use sterna::backend::{Backend, KvCache, KvFormat, TokenIds};
use sterna::generate::{Session, sampler::argmax};
use sterna::model::{LogitRows, Transformer};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

fn all_logits(model: &Transformer<Cpu>, ids: &[u32], format: KvFormat) -> Vec<f32> {
    let mut session = Session::new(model, format).unwrap();
    now(session.advance(model, ids, LogitRows::All)).unwrap().unwrap()
}

fn check_logits(case: &Case) {
    let engine = load(case);
    let vocab = engine.config().vocab_size;
    for length in [16, 64] {
        let ids = tensor_ids(case.logits, &format!("ids{length}"));
        let wanted = tensor_f32(case.logits, &format!("logits{length}_{}", case.variant));
        let ours = all_logits(engine.transformer(), &ids, KvFormat::F32);
        let difference = compare(&ours, &wanted, vocab);
        let Difference { max, mean, argmax_agreement } = difference;
        let name = case.name;
        match (case.expect, length) {
            (Expectation::Exact, _) | (Expectation::MayFlip, 16) => {
                assert!(max <= 1e-4, "{name}, {length} tokens: max |Δ| {max}");
                assert_eq!(argmax_agreement, 1.0, "{name}, {length} tokens");
            }
            (Expectation::MayFlip, _) => {
                assert!(max <= 0.4 && mean <= 0.05, "{name}: max |Δ| {max}, mean {mean}");
                assert!(argmax_agreement >= 0.95, "{name}: argmax {argmax_agreement}");
            }
            (Expectation::HalfScales, _) => {
                assert!(max <= 0.005, "{name}, {length} tokens: max |Δ| {max}");
                assert_eq!(argmax_agreement, 1.0, "{name}, {length} tokens");
            }
        }
    }
}

#[test]
fn logits_agree_with_the_reference_implementation() {
    for case in common::CASES {
        check_logits(case);
    }
}

#[test]
fn hidden_states_agree_layer_by_layer() {
    for case in common::CASES.iter().filter(|case| case.expect != Expectation::HalfScales) {
        let Some(wanted) = common::try_tensor_f32(case.logits, &format!("hidden16_{}", case.variant)) else {
            continue;
        };
        let engine = load(case);
        let model = engine.transformer();
        let config = model.config();
        let ids = tensor_ids(case.logits, "ids16");
        let mut cache = Cpu::default().new_cache(model.cache_shape(KvFormat::F32)).unwrap();
        let size = ids.len() * config.hidden_size;
        let mut seen = 0;
        model
            .forward_observed(TokenIds::Given(&ids), &mut cache, LogitRows::None, |layer, hidden| {
                seen += 1;
                // The last entry of the reference is already through the final norm.
                if layer < config.num_layers {
                    let wanted = &wanted[layer * size..(layer + 1) * size];
                    let difference = max_difference(hidden.data(), wanted);
                    assert!(difference <= 1e-4, "{} layer {layer}: {difference}", case.name);
                }
            })
            .unwrap();
        assert_eq!(seen, config.num_layers + 1);
    }
}

#[test]
fn kv_of_16_bits_stays_within_its_tolerance() {
    for case in common::CASES.iter().filter(|case| case.expect == Expectation::Exact) {
        let engine = load(case);
        let ids = tensor_ids(case.logits, "ids64");
        let wanted = tensor_f32(case.logits, &format!("logits64_{}", case.variant));
        for format in [KvFormat::F16, KvFormat::Q16] {
            let ours = all_logits(engine.transformer(), &ids, format);
            let Difference { max, mean, argmax_agreement } =
                compare(&ours, &wanted, engine.config().vocab_size);
            println!("{} {format:?}: max |Δ| {max}, mean {mean}", case.name);
            assert!(max <= 0.4 && mean <= 0.05, "{} {format:?}: max |Δ| {max}, mean {mean}", case.name);
            assert!(argmax_agreement >= 0.9, "{} {format:?}: argmax {argmax_agreement}", case.name);
        }
    }
}

#[test]
fn decoding_token_by_token_gives_the_logits_of_one_pass() {
    for case in common::CASES {
        let engine = load(case);
        let model = engine.transformer();
        let ids = tensor_ids(case.logits, "ids64");
        let wanted = all_logits(model, &ids, KvFormat::F32);
        for chunk in [1, 7] {
            let mut session = Session::new(model, KvFormat::F32).unwrap();
            let mut ours = Vec::new();
            for ids in ids.chunks(chunk) {
                ours.extend(now(session.advance(model, ids, LogitRows::All)).unwrap().unwrap());
            }
            let difference = max_difference(&ours, &wanted);
            assert!(difference <= 1e-5, "{} in chunks of {chunk}: {difference}", case.name);
        }
    }
}

#[test]
fn a_rewound_session_gives_what_a_fresh_one_gives() {
    let engine = load(&common::CASES[0]);
    let model = engine.transformer();
    let ids = tensor_ids(common::CASES[0].logits, "ids64");
    let mut session = Session::new(model, KvFormat::F32).unwrap();
    now(session.advance(model, &ids, LogitRows::None)).unwrap();
    let mut prompt = ids[..20].to_vec();
    prompt.extend([1, 2, 3]);
    assert_eq!(session.keep_prefix(&prompt), 20);
    let ours = now(session.advance(model, &prompt[20..], LogitRows::All)).unwrap().unwrap();
    let fresh = all_logits(model, &prompt, KvFormat::F32);
    let vocab = model.config().vocab_size;
    assert!(max_difference(&ours, &fresh[20 * vocab..]) <= 1e-5);
}

#[test]
fn greedy_decoding_gives_the_reference_tokens() {
    for case in common::CASES.iter().filter(|case| case.expect == Expectation::Exact) {
        let Some(wanted) = common::try_tensor_ids(case.logits, &format!("greedy16_{}", case.variant)) else {
            continue;
        };
        let engine = load(case);
        let model = engine.transformer();
        let mut session = Session::new(model, KvFormat::F32).unwrap();
        let mut next = tensor_ids(case.logits, "ids16");
        let mut ours = Vec::new();
        while ours.len() < wanted.len() {
            let logits = now(session.advance(model, &next, LogitRows::Last)).unwrap().unwrap();
            ours.push(argmax(&logits));
            next = vec![ours[ours.len() - 1]];
        }
        assert_eq!(ours, wanted, "{}", case.name);
    }
}

#[test]
fn a_token_outside_the_vocabulary_is_refused_and_changes_nothing() {
    let engine = load(&common::CASES[0]);
    let mut session = Session::new(engine.transformer(), KvFormat::F32).unwrap();
    now(session.advance(engine.transformer(), &[1, 2], LogitRows::Last)).unwrap();
    let error = now(session.advance(engine.transformer(), &[3, 512], LogitRows::Last)).unwrap_err();
    assert_eq!(error.code(), "invalid_argument");
    assert_eq!(session.tokens(), [1, 2]);
    assert_eq!(session.cache().len(), 2);
}
