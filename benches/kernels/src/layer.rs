//! A layer of BitNet b1.58 2B-4T: the whole of it, and its matrix products alone.

use std::cell::RefCell;
use std::sync::Arc;
use sterna::backend::cpu::{Cpu, CpuCache, CpuInput, CpuTensor};
use sterna::backend::{AttentionInput, Backend, CacheShape, KvFormat, Norm, RopeAngles};
use sterna::model::{Activation, LinearInput};
use sterna::quant::Matrix;

const HIDDEN: usize = 2560;
const FFN: usize = 6912;
const HEAD_DIM: usize = 128;
const KV_HEADS: usize = 5;
const EPS: f32 = 1e-5;

struct Weights {
    query: Matrix,
    key: Matrix,
    value: Matrix,
    output: Matrix,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

struct Layers {
    weights: Vec<Weights>,
    norm: Arc<[f32]>,
    ffn_norm: Arc<[f32]>,
    cache: CpuCache,
    hidden: CpuTensor,
    inner: CpuTensor,
    angles: RopeAngles,
}

thread_local! {
    static LAYERS: RefCell<Option<Layers>> = const { RefCell::new(None) };
}

/// `count` layers whose caches hold `context` tokens in a format, and the input of `tokens` more. `matrix` makes one of a
/// shape; `floats` gives numbers.
pub fn make(
    count: usize,
    context: usize,
    tokens: usize,
    format: KvFormat,
    mut matrix: impl FnMut(usize, usize) -> Matrix,
    mut floats: impl FnMut(usize) -> Vec<f32>,
) {
    let kv_width = KV_HEADS * HEAD_DIM;
    let weights = (0..count).map(|_| Weights {
        query: matrix(HIDDEN, HIDDEN),
        key: matrix(kv_width, HIDDEN),
        value: matrix(kv_width, HIDDEN),
        output: matrix(HIDDEN, HIDDEN),
        gate: matrix(FFN, HIDDEN),
        up: matrix(FFN, HIDDEN),
        down: matrix(HIDDEN, FFN),
    });
    let weights = weights.collect();
    let shape = CacheShape { layers: count, kv_heads: KV_HEADS, head_dim: HEAD_DIM, format };
    let mut cache = Cpu::default().new_cache(shape).expect("a cache");
    for layer in 0..count {
        let mut tensor = |width| CpuTensor::from_data(width, floats(context * width));
        let input = attention(layer, tensor(HIDDEN), tensor(kv_width), tensor(kv_width));
        Cpu::default().attend(input, &angles(context), &mut cache).expect("memory for the cache");
    }
    Cpu::default().commit(&mut cache, context);
    let hidden = CpuTensor::from_data(HIDDEN, floats(tokens * HIDDEN));
    let inner = CpuTensor::from_data(FFN, floats(tokens * FFN));
    let (norm, ffn_norm) = (vec![1.0; HIDDEN].into(), vec![1.0; FFN].into());
    let layers = Layers { weights, norm, ffn_norm, cache, hidden, inner, angles: angles(tokens) };
    LAYERS.set(Some(layers));
}

fn angles(tokens: usize) -> RopeAngles {
    let half = tokens * HEAD_DIM / 2;
    RopeAngles { cos: vec![0.8; half], sin: vec![0.6; half] }
}

fn attention<'a>(
    layer: usize,
    query: CpuTensor,
    key: CpuTensor,
    value: CpuTensor,
) -> AttentionInput<'a, Cpu> {
    AttentionInput { layer, query, key, value, query_norm: None, key_norm: None, norm_eps: EPS }
}

/// The tokens through layer `index`. Returns one value of the result, as a use of it.
pub fn run(index: usize) -> f32 {
    LAYERS.with_borrow_mut(|layers| layers.as_mut().expect("make comes first").run(index))
}

/// The matrix products of [`run`].
pub fn products(index: usize) -> f32 {
    LAYERS.with_borrow(|layers| layers.as_ref().expect("make comes first").products(index))
}

/// The attention of [`run`].
pub fn attend(index: usize) -> f32 {
    LAYERS.with_borrow_mut(|layers| layers.as_mut().expect("make comes first").attend(index))
}

impl Layers {
    fn run(&mut self, index: usize) -> f32 {
        let cpu = Cpu::default();
        let weights = &self.weights[index];
        let mut hidden = self.hidden.clone();
        let norm = || Norm { weight: &self.norm, eps: EPS };
        let x = cpu.norm_quantize(&hidden, norm(), LinearInput::Int8);
        let [query, key, value] = cpu.linears([&weights.query, &weights.key, &weights.value], &x);
        let heads = cpu
            .attend(attention(index, query, key, value), &self.angles, &mut self.cache)
            .expect("memory for the cache");
        let heads = cpu.norm_quantize(&heads, norm(), LinearInput::Int8);
        cpu.linear_add(&weights.output, &heads, &mut hidden);
        let x = cpu.norm_quantize(&hidden, norm(), LinearInput::Int8);
        let inner = cpu.gate_up(&weights.gate, &weights.up, &x, Activation::Relu2);
        let inner_norm = Norm { weight: &self.ffn_norm, eps: EPS };
        let inner = cpu.norm_quantize(&inner, inner_norm, LinearInput::Int8);
        cpu.linear_add(&weights.down, &inner, &mut hidden);
        hidden.data()[0]
    }

    fn products(&self, index: usize) -> f32 {
        let cpu = Cpu::default();
        let weights = &self.weights[index];
        let input = |x: &CpuTensor| CpuInput::new(x.clone(), LinearInput::Int8);
        let (hidden, inner) = (input(&self.hidden), input(&self.inner));
        let [query, ..] = cpu.linears([&weights.query, &weights.key, &weights.value], &hidden);
        let mut residual = query;
        cpu.linear_add(&weights.output, &hidden, &mut residual);
        let [gate, _] = cpu.linears([&weights.gate, &weights.up], &hidden);
        cpu.linear_add(&weights.down, &inner, &mut residual);
        residual.data()[0] + gate.data()[0]
    }

    fn attend(&mut self, index: usize) -> f32 {
        let tokens = self.hidden.tokens();
        let kv = || CpuTensor::from_data(KV_HEADS * HEAD_DIM, vec![0.5; tokens * KV_HEADS * HEAD_DIM]);
        let input = attention(index, self.hidden.clone(), kv(), kv());
        Cpu::default().attend(input, &self.angles, &mut self.cache).expect("memory for the cache").data()[0]
    }
}
