//! Choosing tokens on the GPU, and whole generations of the embedded model that run ahead of the host.

mod common;
mod gpu_support;
mod numbers;

use common::{EMBEDDED, load_files_on, now};
use gpu_support::{PLAIN_TEAM, gpu_test, open, open_with};
use numbers::Random;
use sterna::backend::cpu::Cpu;
use sterna::backend::gpu::{DeviceOptions, Gpu};
use sterna::backend::{Backend, KvFormat};
use sterna::checkpoint::{ActivationChoice, ReadOptions};
use sterna::engine::Engine;
use sterna::generate::sampler::{Sampler, SamplerOptions};
use sterna::generate::{FinishReason, GenerationOptions, Session, Step};
use sterna::model::LogitRows;
use sterna::text::{Message, RenderOptions};

const VOCABULARY: usize = 5003;
/// Below this margin between the two best logits another rounding may pick the other token.
const CLEAR_MARGIN: f32 = 0.05;
/// The same where inputs are rounded to int8: one that lies between two codes falls either way, and moves logits by
/// so much (docs/decisions/webgpu.md, "Which codes agree").
const CLEAR_MARGIN_OF_INT8: f32 = 0.2;
/// Tokens of a long text.
const LONG_TEXT: u32 = 200;

/// Logits of a plausible shape: a few likely tokens over a broad tail, some of them equal.
fn logits(random: &mut Random) -> Vec<f32> {
    (0..VOCABULARY).map(|_| (8.0 * random.float().powi(5) * 64.0).round() / 64.0).collect()
}

async fn chosen_by_gpu(gpu: &Gpu, options: &SamplerOptions, said: &[u32], rows: &[Vec<f32>]) -> Vec<u32> {
    let mut sampler = gpu.new_sampler(options.clone(), said, VOCABULARY).unwrap();
    let mut ids = Vec::new();
    for logits in rows {
        let choice = gpu.choose(gpu.tensor(VOCABULARY, logits), 1, &mut sampler);
        ids.push(gpu.chosen(choice).await.unwrap());
    }
    ids
}

fn chosen_by_cpu(options: &SamplerOptions, said: &[u32], rows: &[Vec<f32>]) -> Vec<u32> {
    let mut sampler = Sampler::new(options.clone());
    sampler.observe(said);
    let choose = |logits: &Vec<f32>| {
        let id = sampler.sample(&mut logits.clone());
        sampler.observe(&[id]);
        id
    };
    rows.iter().map(choose).collect()
}

/// What a generation gave, and how many steps its prompt took.
struct Outcome {
    ids: Vec<u32>,
    text: String,
    reason: FinishReason,
}

async fn generate<B: Backend>(
    engine: &mut Engine<B>,
    prompt: &[u32],
    options: &GenerationOptions,
) -> Outcome {
    engine.start_generation(prompt.to_vec(), options).unwrap();
    let (mut ids, mut text) = (Vec::new(), String::new());
    loop {
        match engine.step().await.unwrap() {
            Step::Prefill { .. } => {}
            Step::Token { id, text: delta } => {
                ids.push(id);
                text += &delta;
            }
            Step::Done { text: rest, finish_reason, stop_token, .. } => {
                ids.extend(stop_token);
                return Outcome { ids, text: text + &rest, reason: finish_reason };
            }
        }
    }
}

/// By how much the likeliest token after `ids` is likelier than the second, in logits of the CPU.
fn margin_after(engine: &Engine<Cpu>, ids: &[u32]) -> f32 {
    let model = engine.transformer();
    let mut session = Session::new(model, KvFormat::F32).unwrap();
    let mut logits = now(session.advance(model, ids, LogitRows::Last)).unwrap().unwrap();
    logits.sort_by(|a, b| b.total_cmp(a));
    logits[0] - logits[1]
}

fn chat(engine: &Engine<Gpu>, text: &str) -> Vec<u32> {
    let message: Message =
        serde_json::from_value(serde_json::json!({ "role": "user", "content": text })).unwrap();
    let options = RenderOptions { add_generation_prompt: true, ..Default::default() };
    engine.encode_chat(&[message], options).unwrap()
}

gpu_test! {
    async fn every_combination_of_filters_chooses_as_the_cpu_does() {
        let Some(gpu) = open().await else { return };
        let mut random = Random::new(21);
        let rows: Vec<Vec<f32>> = (0..12).map(|_| logits(&mut random)).collect();
        let said: Vec<u32> = (0..VOCABULARY as u32).step_by(7).collect();
        let plain = SamplerOptions {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 5,
            drawn: 0,
        };
        let mut cases = vec![plain.clone(), SamplerOptions { repetition_penalty: 1.7, ..plain.clone() }];
        for (top_k, top_p, min_p) in [
            (0, 1.0, 0.0), (40, 1.0, 0.0), (0, 0.9, 0.0), (0, 0.3, 0.0), (0, 0.0, 0.0), (0, 1.0, 0.05),
            (50, 0.8, 0.02), (1, 1.0, 0.0), (VOCABULARY * 2, 0.95, 0.0),
        ] {
            for (temperature, repetition_penalty) in [(1.0, 1.0), (0.6, 1.3), (2.5, 1.0)] {
                let filters = SamplerOptions { temperature, top_k, top_p, min_p, repetition_penalty, ..plain.clone() };
                cases.push(filters);
            }
        }
        let (mut same, mut all) = (0, 0);
        for options in cases {
            let ours = chosen_by_gpu(&gpu, &options, &said, &rows).await;
            let wanted = chosen_by_cpu(&options, &said, &rows);
            if options.temperature == 0.0 {
                assert_eq!(ours, wanted, "{options:?}");
            }
            same += ours.iter().zip(&wanted).filter(|(a, b)| a == b).count();
            all += wanted.len();
        }
        // The two add up weights in different precision: a draw next to a border may fall on its other side.
        assert!(same * 100 >= all * 98, "{same} of {all} choices are the CPU's");
    }

    async fn draws_follow_the_distribution() {
        let Some(gpu) = open().await else { return };
        let probabilities = [0.5f32, 0.3, 0.15, 0.05];
        let mut row = vec![-1e4; VOCABULARY];
        for (place, probability) in probabilities.iter().enumerate() {
            row[1000 * place + 3] = probability.ln();
        }
        let options = SamplerOptions {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 11,
            drawn: 0,
        };
        let draws = 600;
        let ids = chosen_by_gpu(&gpu, &options, &[], &vec![row; draws]).await;
        for (place, probability) in probabilities.into_iter().enumerate() {
            let share = ids.iter().filter(|id| **id as usize == 1000 * place + 3).count() as f32 / draws as f32;
            assert!((share - probability).abs() < 0.07, "{share} {probability}");
        }
    }

    async fn logits_that_are_not_numbers_choose_something() {
        let Some(gpu) = open().await else { return };
        for temperature in [0.0, 1.0] {
            let options = SamplerOptions {
                temperature,
                top_k: 3,
                top_p: 0.9,
                min_p: 0.0,
                repetition_penalty: 1.0,
                seed: 1,
                drawn: 0,
            };
            for row in [vec![f32::NAN; VOCABULARY], vec![f32::NEG_INFINITY; VOCABULARY]] {
                let ids = chosen_by_gpu(&gpu, &options, &[], &[row]).await;
                assert!((ids[0] as usize) < VOCABULARY);
            }
        }
    }

    async fn the_embedded_model_says_what_it_says_on_the_cpu() {
        let Some(gpu) = open().await else { return };
        let options = GenerationOptions {
            temperature: Some(0.0),
            max_tokens: Some(LONG_TEXT),
            ignore_eos: true,
            ..Default::default()
        };
        for (activations, text, clear_margin) in [
            (ActivationChoice::Float, "What is the capital of France?", CLEAR_MARGIN),
            (ActivationChoice::Auto, "Who are you?", CLEAR_MARGIN_OF_INT8),
        ] {
            let read = || ReadOptions { activations, ..Default::default() };
            let mut ours = load_files_on(gpu.clone(), EMBEDDED, read()).await;
            let mut theirs = load_files_on(Cpu::default(), EMBEDDED, read()).await;
            let prompt = chat(&ours, text);
            let on_gpu = generate(&mut ours, &prompt, &options).await;
            let on_cpu = generate(&mut theirs, &prompt, &options).await;
            assert_eq!((on_gpu.ids.len(), on_gpu.reason), (LONG_TEXT as usize, FinishReason::Length));
            let same = on_gpu.ids.iter().zip(&on_cpu.ids).take_while(|(a, b)| a == b).count();
            if same < LONG_TEXT as usize {
                // Where two tokens are about as likely, another rounding may take the other one.
                let mut ids = prompt.clone();
                ids.extend(&on_cpu.ids[..same]);
                let margin = margin_after(&theirs, &ids);
                assert!(margin < clear_margin, "{margin} after {same} tokens: {:?}, {:?}", on_gpu.text, on_cpu.text);
            }
        }
    }

    async fn a_generation_stops_and_the_next_one_goes_on_from_its_cache() {
        let Some(gpu) = open().await else { return };
        let mut engine = load_files_on(gpu, EMBEDDED, ReadOptions::default()).await;
        let prompt = chat(&engine, "What is the capital of France?");
        let greedy = GenerationOptions { temperature: Some(0.0), max_tokens: Some(30), ..Default::default() };
        let first = generate(&mut engine, &prompt, &greedy).await;
        // Every id that the cache stands for is one that was said, whatever ran ahead of the stop.
        let mut said = prompt.clone();
        said.extend(&first.ids);
        assert!(said.starts_with(engine.session().tokens()));
        assert!(engine.session().tokens().len() >= prompt.len());
        let again = generate(&mut engine, &prompt, &greedy).await;
        assert_eq!(first.ids, again.ids);

        let stop = GenerationOptions { stop: vec![first.text[2..4].to_owned()], ..greedy };
        let stopped = generate(&mut engine, &prompt, &stop).await;
        assert_eq!(stopped.reason, FinishReason::Stop);
        assert!(first.text.starts_with(&stopped.text));
    }

    async fn a_seed_repeats() {
        let Some(gpu) = open().await else { return };
        let mut engine = load_files_on(gpu, EMBEDDED, ReadOptions::default()).await;
        let prompt = chat(&engine, "Tell me a story.");
        let options = |seed| GenerationOptions {
            temperature: Some(1.2),
            top_p: Some(0.95),
            seed: Some(seed),
            max_tokens: Some(24),
            ignore_eos: true,
            ..Default::default()
        };
        let first = generate(&mut engine, &prompt, &options(1)).await;
        assert_eq!(first.ids, generate(&mut engine, &prompt, &options(1)).await.ids);
        assert_ne!(first.ids, generate(&mut engine, &prompt, &options(2)).await.ids);
    }

    async fn a_steady_step_is_one_submit_and_creates_nothing() {
        let Some(gpu) = open().await else { return };
        let mut engine = load_files_on(gpu.clone(), EMBEDDED, ReadOptions::default()).await;
        let layers = engine.config().num_layers;
        for temperature in [0.0, 0.8] {
            let prompt = chat(&engine, "What is the capital of France?");
            let options = GenerationOptions {
                temperature: Some(temperature),
                max_tokens: Some(64),
                ignore_eos: true,
                ..Default::default()
            };
            engine.start_generation(prompt, &options).unwrap();
            for _ in 0..20 {
                engine.step().await.unwrap();
            }
            let before = gpu.counters();
            let steps = 20;
            for _ in 0..steps {
                engine.step().await.unwrap();
            }
            let after = gpu.counters();
            let dispatches = (after.dispatches - before.dispatches) / steps;
            assert!(dispatches <= 8 * layers + 6, "{dispatches} dispatches in {layers} layers");
            assert!(after.submits - before.submits <= steps);
            assert!(after.bytes_read - before.bytes_read <= 16 * steps as u64);
            assert_eq!(after.created, before.created);
        }
    }

    async fn kernels_are_chosen_among_those_that_give_right_results() {
        let Some(gpu) = open_with(&DeviceOptions::default(), None).await else { return };
        let mut engine = load_files_on(gpu.clone(), EMBEDDED, ReadOptions::default()).await;
        assert_eq!(gpu.rejected(), [""; 0]);
        let prompt = chat(&engine, "What is the capital of France?");
        let options = GenerationOptions { temperature: Some(0.0), max_tokens: Some(20), ..Default::default() };
        assert!(generate(&mut engine, &prompt, &options).await.text.contains("Paris"), "{}", gpu.kernel_name());
    }

    async fn a_lost_device_is_told() {
        // A device of its own: others are shared.
        let Ok(gpu) = Gpu::open(&DeviceOptions::default(), Some(PLAIN_TEAM)).await else { return };
        let mut engine = load_files_on(gpu.clone(), EMBEDDED, ReadOptions::default()).await;
        let prompt = chat(&engine, "Who are you?");
        let options = GenerationOptions { temperature: Some(0.0), max_tokens: Some(20), ..Default::default() };
        engine.start_generation(prompt, &options).unwrap();
        engine.step().await.unwrap();
        engine.step().await.unwrap();
        gpu.destroy();
        let error = loop {
            match engine.step().await {
                Ok(Step::Done { .. }) => panic!("the device is lost"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), "device_lost");
    }
}
