//! The embedded model, end to end, against what transformers gave for it: chat template, token ids,
//! greedy text, losses. The same file runs natively and, through wasm-pack, in a browser.

mod common;

use common::EMBEDDED;
use common::now;
use serde::Deserialize;
use sterna::backend::KvFormat;
use sterna::backend::cpu::Cpu;
use sterna::checkpoint::{EmbeddingFormat, ReadOptions};
use sterna::engine::{Engine, EngineOptions};
use sterna::generate::{EvaluationKind, FinishReason, GenerationOptions, Step};
use sterna::text::{Message, RenderOptions};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

/// Below this margin between the two best logits another rounding may pick the other token.
const CLEAR_MARGIN: f32 = 0.05;

#[derive(Deserialize)]
struct Reference {
    cases: Vec<ReferenceCase>,
    perplexity: Perplexity,
}

#[derive(Deserialize)]
struct ReferenceCase {
    messages: Option<Vec<Message>>,
    prompt: Option<String>,
    prompt_text: Option<String>,
    prompt_ids: Vec<u32>,
    greedy_ids: Vec<u32>,
    greedy_text: String,
    smallest_top2_margin: f32,
}

#[derive(Deserialize)]
struct Perplexity {
    text: String,
    ids: Vec<u32>,
    nll_per_token: Vec<f32>,
    perplexity: f32,
}

fn reference() -> Reference {
    serde_json::from_slice(include_bytes!("fixtures/bit-7m-reference.json")).unwrap()
}

fn engine() -> Engine<Cpu> {
    common::load_files(EMBEDDED, ReadOptions::default())
}

fn for_answer() -> RenderOptions {
    RenderOptions { add_generation_prompt: true, ..Default::default() }
}

/// What a generation gave.
struct Outcome {
    ids: Vec<u32>,
    text: String,
    reason: FinishReason,
    stop_sequence: Option<String>,
    cached_tokens: usize,
}

fn generate(engine: &mut Engine<Cpu>, prompt: &[u32], options: &GenerationOptions) -> Outcome {
    engine.start_generation(prompt.to_vec(), options).unwrap();
    let (mut ids, mut text) = (Vec::new(), String::new());
    loop {
        match now(engine.step()).unwrap() {
            Step::Prefill { .. } => {}
            Step::Token { id, text: delta } => {
                ids.push(id);
                text += &delta;
            }
            Step::Done { text: rest, finish_reason, stop_sequence, stop_token, usage } => {
                ids.extend(stop_token);
                assert_eq!(usage.completion_tokens, ids.len());
                assert_eq!(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
                let (text, cached_tokens) = (text + &rest, usage.cached_tokens);
                return Outcome { ids, text, reason: finish_reason, stop_sequence, cached_tokens };
            }
        }
    }
}

fn greedy() -> GenerationOptions {
    GenerationOptions { temperature: Some(0.0), top_p: Some(1.0), ..Default::default() }
}

#[test]
fn prompts_have_the_reference_text_and_ids() {
    let engine = engine();
    for case in reference().cases {
        if let Some(messages) = &case.messages {
            let text = engine.apply_chat_template(messages, for_answer()).unwrap();
            assert_eq!(Some(text), case.prompt_text);
            assert_eq!(engine.encode_chat(messages, for_answer()).unwrap(), case.prompt_ids);
        } else {
            let text = case.prompt.as_deref().unwrap();
            assert_eq!(engine.tokenizer().unwrap().encode(text, true).unwrap(), case.prompt_ids);
        }
    }
}

#[test]
fn greedy_text_is_that_of_the_reference() {
    let mut engine = engine();
    let mut identical = 0;
    let cases = reference().cases;
    for case in &cases {
        let outcome = generate(&mut engine, &case.prompt_ids, &greedy());
        if outcome.ids == case.greedy_ids {
            identical += 1;
            assert_eq!(outcome.text, case.greedy_text);
            assert_eq!(outcome.reason, FinishReason::Stop);
            continue;
        }
        assert!(
            case.smallest_top2_margin < CLEAR_MARGIN,
            "{:?} instead of {:?}, though every margin is clear",
            outcome.text,
            case.greedy_text
        );
    }
    assert!(identical + 3 >= cases.len(), "only {identical} of {} texts are identical", cases.len());
}

#[test]
fn losses_are_those_of_the_reference() {
    let mut engine = engine();
    let Perplexity { text, ids, nll_per_token, perplexity } = reference().perplexity;
    assert_eq!(engine.tokenizer().unwrap().encode(&text, true).unwrap(), ids);
    let losses = losses_of(&mut engine, ids);
    assert_eq!(losses.len(), nll_per_token.len());
    // Int8 rounding has exact ties here (bfloat16 embeddings), which fall one way or the other with the
    // last bit of the first norm; from the first one on, losses differ by the rounding noise.
    let before_a_tie = 5;
    let difference = common::max_difference(&losses[..before_a_tie], &nll_per_token[..before_a_tie]);
    assert!(difference <= 1e-3, "{difference}");
    let sum: f32 = losses.iter().zip(&nll_per_token).map(|(a, b)| (a - b).abs()).sum();
    assert!(sum / losses.len() as f32 <= 0.05, "mean difference {}", sum / losses.len() as f32);
    let ours = (losses.iter().sum::<f32>() / losses.len() as f32).exp();
    assert!((ours / perplexity - 1.0).abs() < 0.01, "{ours} instead of {perplexity}");
}

/// `-ln p` of every token but the first.
fn losses_of(engine: &mut Engine<Cpu>, ids: Vec<u32>) -> Vec<f32> {
    engine.start_evaluation(ids, EvaluationKind::Nll).unwrap();
    let mut losses = Vec::new();
    loop {
        let step = now(engine.evaluate_step()).unwrap();
        losses.extend(step.values);
        if step.done == step.total {
            return losses;
        }
    }
}

#[test]
fn a_rounded_embedding_keeps_the_perplexity() {
    let Perplexity { ids, perplexity, .. } = reference().perplexity;
    for (embedding, most) in [
        (EmbeddingFormat::File, 0.01),
        (EmbeddingFormat::F16, 0.01),
        (EmbeddingFormat::Q8, 0.01),
        (EmbeddingFormat::Q4, 0.03),
    ] {
        let read = ReadOptions { embedding, ..Default::default() };
        let change = perplexity_with(EngineOptions { read, ..exact() }, &ids) / perplexity - 1.0;
        assert!(change.abs() < most, "{embedding:?}: {change:+.4}");
    }
}

#[test]
fn rounded_keys_and_values_keep_the_perplexity() {
    let Perplexity { ids, perplexity, .. } = reference().perplexity;
    for kv_format in [KvFormat::F32, KvFormat::F16, KvFormat::Q16, KvFormat::Q8] {
        let change = perplexity_with(EngineOptions { kv_format, ..exact() }, &ids) / perplexity - 1.0;
        assert!(change.abs() < 0.01, "{kv_format:?}: {change:+.4}");
    }
}

fn exact() -> EngineOptions {
    EngineOptions { kv_format: KvFormat::F32, ..Default::default() }
}

fn perplexity_with(options: EngineOptions, ids: &[u32]) -> f32 {
    let mut engine = common::load_files_with(Cpu::default(), EMBEDDED, options);
    let losses = losses_of(&mut engine, ids.to_vec());
    (losses.iter().sum::<f32>() / losses.len() as f32).exp()
}

#[test]
fn losses_of_a_text_longer_than_the_context_cover_every_token_once() {
    let mut engine = engine();
    let ids: Vec<u32> = (0..1200).map(|i| 300 + i * 7 % 3000).collect();
    engine.start_evaluation(ids.clone(), EvaluationKind::Nll).unwrap();
    let mut losses = Vec::new();
    while losses.len() < ids.len() - 1 {
        losses.extend(now(engine.evaluate_step()).unwrap().values);
    }
    assert_eq!(losses.len(), ids.len() - 1);
    assert!(losses.iter().all(|loss| loss.is_finite()));
}

#[test]
fn a_seed_gives_the_same_text_every_time() {
    let mut engine = engine();
    let prompt = engine.encode_chat(&[Message::new("user", "Tell me a story.")], for_answer()).unwrap();
    let mut run = |seed| {
        let options = GenerationOptions { seed: Some(seed), max_tokens: Some(40), ..Default::default() };
        generate(&mut engine, &prompt, &options).text
    };
    let first = run(7);
    assert_eq!(first, run(7));
    assert!((8..12).any(|seed| run(seed) != first));
}

#[test]
fn a_stop_string_that_straddles_tokens_ends_the_text_before_it() {
    let mut engine = engine();
    let prompt =
        engine.encode_chat(&[Message::new("user", "What is the capital of Japan?")], for_answer()).unwrap();
    let options = GenerationOptions { stop: vec!["tal of Ja".into()], ..greedy() };
    let outcome = generate(&mut engine, &prompt, &options);
    assert_eq!(outcome.text, "The capi");
    assert_eq!(outcome.reason, FinishReason::Stop);
    assert_eq!(outcome.stop_sequence.as_deref(), Some("tal of Ja"));
}

#[test]
fn max_tokens_and_the_context_end_a_text_for_its_length() {
    let mut engine = engine();
    let prompt = engine.tokenizer().unwrap().encode("Once upon a time,", true).unwrap();
    let outcome = generate(&mut engine, &prompt, &GenerationOptions { max_tokens: Some(5), ..greedy() });
    assert_eq!((outcome.ids.len(), outcome.reason), (5, FinishReason::Length));
    let endless = GenerationOptions { ignore_eos: true, max_tokens: Some(100_000), ..greedy() };
    let outcome = generate(&mut engine, &prompt, &endless);
    assert_eq!(outcome.reason, FinishReason::Length);
    assert_eq!(prompt.len() + outcome.ids.len(), engine.context_length());
}

#[test]
fn the_next_turn_reuses_the_cache_and_gives_the_same_text() {
    let mut warm = engine();
    let mut turns = vec![Message::new("user", "Hello!")];
    let first = warm.encode_chat(&turns, for_answer()).unwrap();
    let answer = generate(&mut warm, &first, &greedy());
    turns.push(Message::new("assistant", answer.text));
    turns.push(Message::new("user", "What is your name?"));
    let second = warm.encode_chat(&turns, for_answer()).unwrap();
    let reused = generate(&mut warm, &second, &greedy());
    assert!(reused.cached_tokens > first.len());
    assert_eq!(reused.text, generate(&mut engine(), &second, &greedy()).text);
}

#[test]
fn wrong_requests_are_refused_and_the_engine_stays_usable() {
    let mut engine = engine();
    let code = |engine: &mut Engine<Cpu>, prompt: Vec<u32>, options: GenerationOptions| {
        engine.start_generation(prompt, &options).unwrap_err().code()
    };
    assert_eq!(code(&mut engine, vec![], greedy()), "invalid_argument");
    assert_eq!(code(&mut engine, vec![5; 512], greedy()), "context_overflow");
    let hot = GenerationOptions { temperature: Some(-1.0), ..Default::default() };
    assert_eq!(code(&mut engine, vec![5], hot), "invalid_argument");
    let nan = GenerationOptions { top_p: Some(f32::NAN), ..Default::default() };
    assert_eq!(code(&mut engine, vec![5], nan), "invalid_argument");
    let nothing = GenerationOptions { max_tokens: Some(0), ..Default::default() };
    assert_eq!(code(&mut engine, vec![5], nothing), "invalid_argument");
    let empty_stop = GenerationOptions { stop: vec![String::new()], ..Default::default() };
    assert_eq!(code(&mut engine, vec![5], empty_stop), "invalid_argument");
    assert_eq!(now(engine.step()).unwrap_err().code(), "invalid_argument");
    engine.start_generation(vec![9_999], &greedy()).unwrap();
    assert_eq!(now(engine.step()).unwrap_err().code(), "invalid_argument");
    assert_eq!(engine.apply_chat_template(&[], for_answer()).unwrap_err().code(), "invalid_argument");
    let case = &reference().cases[2];
    assert_eq!(generate(&mut engine, &case.prompt_ids, &greedy()).text, case.greedy_text);
}

#[test]
fn a_generation_goes_on_in_another_engine_as_it_would_have_gone_on_in_the_first() {
    let message: Message =
        serde_json::from_value(serde_json::json!({ "role": "user", "content": "Who are you?" })).unwrap();
    let mut first = engine();
    let prompt = first.encode_chat(&[message], for_answer()).unwrap();
    let sampled = GenerationOptions {
        temperature: Some(1.2),
        top_p: Some(0.95),
        repetition_penalty: Some(1.1),
        seed: Some(3),
        ..Default::default()
    };
    for (options, max_tokens) in [(greedy(), 30), (sampled, 30)] {
        let options = GenerationOptions { max_tokens: Some(max_tokens), ignore_eos: true, ..options };
        let whole = generate(&mut first, &prompt, &options);
        // A stop string that begins before the place where the generation is continued.
        let middle = whole.text.char_indices().nth(whole.text.chars().count() / 2).unwrap().0;
        let stop = whole.text[middle..].chars().take(4).collect::<String>();
        let stopping = GenerationOptions { stop: vec![stop], ..options.clone() };
        let stopped = generate(&mut first, &prompt, &stopping);
        for (options, wanted) in [(&options, &whole), (&stopping, &stopped)] {
            for given in [1, wanted.ids.len() / 2, wanted.ids.len() - 1] {
                let (given, rest) = wanted.ids.split_at(given);
                let options = GenerationOptions { generated: given.to_vec(), ..options.clone() };
                let mut other = engine();
                other.start_generation(prompt.clone(), &options).unwrap();
                let (mut ids, mut text) = (Vec::new(), String::new());
                let usage = loop {
                    match now(other.step()).unwrap() {
                        Step::Prefill { .. } => {}
                        Step::Token { id, text: delta } => {
                            ids.push(id);
                            text += &delta;
                        }
                        Step::Done { text: rest, usage, .. } => {
                            text += &rest;
                            break usage;
                        }
                    }
                };
                assert_eq!(ids, rest);
                assert!(wanted.text.ends_with(&text), "{text:?} of {:?}", wanted.text);
                assert_eq!(usage.prompt_tokens, prompt.len());
                assert_eq!(usage.completion_tokens, wanted.ids.len());
            }
        }
    }
}
