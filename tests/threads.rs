//! The CPU backend gives bit for bit the same with any number of threads: every verb that is split, and
//! every reference checkpoint. (That the numbers are right with one thread is what `kernels.rs` and
//! `reference.rs` show.)

mod common;
mod numbers;

use common::{CASES, now, tensor_ids};
use numbers::Random;
use sterna::backend::cpu::{Cpu, CpuInput, CpuTensor};
use sterna::backend::{AttentionInput, Backend, CacheShape, KvFormat, RopeAngles};
use sterna::generate::Session;
use sterna::model::{Activation, LinearInput, LogitRows};
use sterna::quant::{DenseEncoding, Matrix, Scales};

/// Few, and more than a test machine has cores.
const THREADS: [usize; 2] = [2, 5];

/// Compares what `verb` gives with one thread and with several.
fn check(what: &str, verb: impl Fn(&Cpu) -> Vec<f32>) {
    let wanted = verb(&Cpu::default());
    for threads in THREADS {
        let cpu = Cpu::with_threads(threads);
        for _ in 0..2 {
            let ours = verb(&cpu);
            let same = ours.iter().zip(&wanted).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(ours.len() == wanted.len() && same, "{what}, {threads} threads");
        }
    }
}

#[test]
fn products_do_not_depend_on_the_threads() {
    let mut random = Random::new(1);
    for (rows, cols) in [(3usize, 5usize), (1041, 320), (400, 1408)] {
        let groups = Scales::Group { size: 64, values: random.floats(rows * cols.div_ceil(64)) };
        let by_row = Scales::Row(random.floats(rows));
        let matrices = [
            random.ternary(rows, cols, Scales::Tensor(0.37)),
            random.ternary(rows / 2 + 1, cols, groups),
            random.ternary(rows, cols, by_row),
            random.dense(rows, cols, DenseEncoding::F16),
            random.dense(rows + 7, cols, DenseEncoding::BF16),
            Matrix::Int8(random.int8(rows, cols)),
        ];
        let [a, b, c, d, e, f] = &matrices;
        for tokens in [1, 9] {
            let x = random.tensor(tokens, cols);
            for kind in [LinearInput::Int8, LinearInput::Float] {
                let (gate, up) = (random.ternary(rows, cols, Scales::Tensor(0.2)), a);
                check(&format!("{rows}×{cols}, {tokens} tokens, {kind:?}"), |cpu| {
                    let x = CpuInput::new(x.clone(), kind);
                    let mut all: Vec<f32> = cpu
                        .linears([a, b, c, d, e, f], &x)
                        .iter()
                        .flat_map(|out| out.data().to_vec())
                        .collect();
                    all.extend(cpu.gate_up(&gate, up, &x, Activation::Silu).data());
                    let mut residual = CpuTensor::from_data(rows, vec![0.5; tokens * rows]);
                    cpu.linear_add(a, &x, &mut residual);
                    all.extend(residual.data());
                    all
                });
            }
        }
    }
}

#[test]
fn attention_does_not_depend_on_the_threads() {
    let (heads, kv_heads, head_dim) = (6, 3, 32);
    for format in [KvFormat::F32, KvFormat::F16] {
        check("attention", |cpu| {
            let mut random = Random::new(2);
            let mut cache = cpu.new_cache(CacheShape { layers: 1, kv_heads, head_dim, format }).unwrap();
            let mut all = Vec::new();
            for tokens in [1, 17, 200, 1, 1] {
                let half = tokens * head_dim / 2;
                let input = AttentionInput {
                    layer: 0,
                    query: random.tensor(tokens, heads * head_dim),
                    key: random.tensor(tokens, kv_heads * head_dim),
                    value: random.tensor(tokens, kv_heads * head_dim),
                    query_norm: None,
                    key_norm: None,
                    norm_eps: 1e-6,
                };
                let angles = RopeAngles { cos: vec![0.8; half], sin: vec![0.6; half] };
                all.extend(cpu.attend(input, &angles, &mut cache).unwrap().data());
                cpu.commit(&mut cache, tokens);
            }
            all
        });
    }
}

#[test]
fn reference_checkpoints_do_not_depend_on_the_threads() {
    for case in CASES {
        let ids = tensor_ids(case.logits, "ids16");
        check(case.name, |cpu| {
            let engine = common::load_on(cpu.clone(), case);
            let model = engine.transformer();
            let mut session = Session::new(model, KvFormat::F16).unwrap();
            let (prompt, rest) = ids.split_at(9);
            let mut all = now(session.advance(model, prompt, LogitRows::All)).unwrap().unwrap();
            for id in rest {
                all.extend(now(session.advance(model, &[*id], LogitRows::Last)).unwrap().unwrap());
            }
            all
        });
    }
}
