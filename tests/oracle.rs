//! A second forward pass, without a cache and in the plainest form, as an oracle for the real one: the
//! whole text is run again for every position, over the scalar definitions.

mod common;

use common::{CASES, Case, Expectation, max_difference, now, tensor_ids};
use sterna::backend::KvFormat;
use sterna::backend::cpu::scalar;
use sterna::checkpoint::{CheckpointReader, ReadOptions};
use sterna::generate::Session;
use sterna::model::{Activation, LinearInput, LogitRows, ModelConfig, RopeScaling, Weights, WeightsBuilder};
use sterna::quant::Matrix;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

struct Oracle {
    config: ModelConfig,
    weights: Weights<Matrix, Vec<f32>>,
}

impl Oracle {
    fn load(case: &Case) -> Self {
        let read = ReadOptions { activations: case.activations, ..Default::default() };
        let mut reader = CheckpointReader::new(read);
        for (name, bytes) in case.files {
            reader.begin_file(name, Some(bytes.len() as u64)).unwrap();
            reader.push(bytes).unwrap();
            reader.end_file().unwrap();
        }
        let (checkpoint, tensors) = reader.finish().unwrap();
        let mut builder = WeightsBuilder::default();
        for tensor in tensors {
            builder.insert(tensor.role, tensor.value).unwrap();
        }
        let weights = builder.finish(&checkpoint.config).unwrap();
        Self { config: checkpoint.config, weights }
    }

    /// Logits of the last of `ids`.
    fn logits(&self, ids: &[u32]) -> Vec<f32> {
        let config = &self.config;
        let mut hidden: Vec<Vec<f32>> = ids.iter().map(|id| self.embedding(*id)).collect();
        for layer in &self.weights.layers {
            let normed = each(&hidden, |x| scalar::rms_norm(x, &layer.attn_norm, config.norm_eps));
            let query = self.heads(&normed, &layer.query, layer.query_norm.as_deref());
            let key = self.heads(&normed, &layer.key, layer.key_norm.as_deref());
            let value = each(&normed, |x| self.linear(&layer.value, x));
            for (position, hidden) in hidden.iter_mut().enumerate() {
                let mut heads = Vec::new();
                for (head, query) in query[position].iter().enumerate() {
                    let kv_head = head * config.num_kv_heads / config.num_heads;
                    let columns = kv_head * config.head_dim..(kv_head + 1) * config.head_dim;
                    let keys: Vec<_> = key[..=position].iter().map(|heads| heads[kv_head].clone()).collect();
                    let values: Vec<_> =
                        value[..=position].iter().map(|x| x[columns.clone()].to_vec()).collect();
                    heads.extend(scalar::attention(query, &keys, &values));
                }
                let heads = self.sub_norm(heads, layer.attn_sub_norm.as_deref());
                add(hidden, &self.linear(&layer.attn_output, &heads));
                let normed = scalar::rms_norm(hidden, &layer.ffn_norm, config.norm_eps);
                let gate = self.linear(&layer.gate, &normed);
                let up = self.linear(&layer.up, &normed);
                let inner = gate.iter().zip(&up).map(|(g, u)| u * activate(config.activation, *g)).collect();
                let inner = self.sub_norm(inner, layer.ffn_sub_norm.as_deref());
                add(hidden, &self.linear(&layer.down, &inner));
            }
        }
        let last = scalar::rms_norm(&hidden[ids.len() - 1], &self.weights.output_norm, config.norm_eps);
        scalar::linear(self.weights.head(), &last)
    }

    fn embedding(&self, id: u32) -> Vec<f32> {
        let mut row = vec![0.0; self.config.hidden_size];
        self.weights.embedding.decode_row(id as usize, &mut row);
        row
    }

    fn linear(&self, weight: &Matrix, x: &[f32]) -> Vec<f32> {
        match (weight, self.config.linear_input) {
            (Matrix::Ternary(_), LinearInput::Int8) => scalar::linear_int8(weight, x),
            _ => scalar::linear(weight, x),
        }
    }

    fn sub_norm(&self, x: Vec<f32>, weight: Option<&[f32]>) -> Vec<f32> {
        match weight {
            Some(weight) => scalar::rms_norm(&x, weight, self.config.norm_eps),
            None => x,
        }
    }

    /// Rotated heads of every position.
    fn heads(&self, x: &[Vec<f32>], weight: &Matrix, norm: Option<&[f32]>) -> Vec<Vec<Vec<f32>>> {
        let rotated = |(position, x): (usize, &Vec<f32>)| {
            let heads = self.linear(weight, x);
            let heads = heads.chunks(self.config.head_dim);
            heads.map(|head| self.rotate(self.sub_norm(head.to_vec(), norm), position)).collect()
        };
        x.iter().enumerate().map(rotated).collect()
    }

    /// Rotary embedding, from the formulas of the YaRN paper (and plain RoPE with a factor of 1).
    fn rotate(&self, head: Vec<f32>, position: usize) -> Vec<f32> {
        let dim = head.len();
        let theta = f64::from(self.config.rope.theta);
        let (factor, length) = match &self.config.rope.scaling {
            RopeScaling::None => (1.0, 1.0),
            RopeScaling::Yarn { factor, original_context, .. } => {
                (f64::from(*factor), *original_context as f64)
            }
            other => panic!("no reference checkpoint has {other:?}"),
        };
        let turns =
            |turns: f64| dim as f64 * (length / (turns * std::f64::consts::TAU)).ln() / (2.0 * theta.ln());
        let low = turns(32.0).floor().max(0.0);
        let high = turns(1.0).ceil().min(dim as f64 - 1.0);
        let amplitude = 1.0 + 0.1 * factor.ln();
        let mut out = head.clone();
        for i in 0..dim / 2 {
            let ramp = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
            let frequency = theta.powf(-2.0 * i as f64 / dim as f64) * ((1.0 - ramp) + ramp / factor);
            let (sin, cos) = (position as f64 * frequency).sin_cos();
            let (a, b) = (f64::from(head[i]), f64::from(head[i + dim / 2]));
            out[i] = ((a * cos - b * sin) * amplitude) as f32;
            out[i + dim / 2] = ((b * cos + a * sin) * amplitude) as f32;
        }
        out
    }
}

fn each(rows: &[Vec<f32>], f: impl Fn(&[f32]) -> Vec<f32>) -> Vec<Vec<f32>> {
    rows.iter().map(|row| f(row)).collect()
}

fn add(sum: &mut [f32], x: &[f32]) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
}

fn activate(activation: Activation, gate: f32) -> f32 {
    match activation {
        Activation::Relu2 => gate.max(0.0).powi(2),
        Activation::Silu => gate / (1.0 + (-gate).exp()),
    }
}

#[test]
fn the_cached_pass_agrees_with_the_oracle_at_every_position() {
    for case in CASES.iter().filter(|case| case.expect != Expectation::MayFlip) {
        let oracle = Oracle::load(case);
        let engine = common::load(case);
        let ids = &tensor_ids(case.logits, "ids16")[..8];
        let mut session = Session::new(engine.transformer(), KvFormat::F32).unwrap();
        for end in 1..=ids.len() {
            let ours = now(session.advance(engine.transformer(), &ids[end - 1..end], LogitRows::Last))
                .unwrap()
                .unwrap();
            let difference = max_difference(&ours, &oracle.logits(&ids[..end]));
            assert!(difference <= 1e-4, "{} at {end}: {difference}", case.name);
        }
    }
}
