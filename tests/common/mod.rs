//! The reference checkpoints, compiled in so that the same tests run in a browser.

#![allow(dead_code, reason = "each test binary uses its own part")]

use safetensors::{Dtype, SafeTensors};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use sterna::backend::cpu::Cpu;
use sterna::backend::{Backend, KvFormat};
use sterna::checkpoint::{ActivationChoice, ReadOptions};
use sterna::engine::{Engine, EngineOptions, Loader};
use sterna::generate::sampler::argmax;

/// How close a checkpoint comes to its reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Within 1e-4 everywhere.
    Exact,
    /// As `Exact` on 16 tokens; on 64 an int8 rounding tie may flip.
    MayFlip,
    /// The file stores scales as f16 that the source has in higher precision.
    HalfScales,
}

/// One checkpoint and where its numbers are.
pub struct Case {
    pub name: &'static str,
    pub files: &'static [(&'static str, &'static [u8])],
    pub logits: &'static [u8],
    /// Suffix of the logits' tensor names.
    pub variant: &'static str,
    pub activations: ActivationChoice,
    pub expect: Expectation,
}

macro_rules! folder {
    ($folder:literal) => {
        &[
            ("config.json", include_bytes!(concat!("../fixtures/", $folder, "/config.json"))),
            ("model.safetensors", include_bytes!(concat!("../fixtures/", $folder, "/model.safetensors"))),
        ]
    };
}

macro_rules! gguf {
    ($file:literal) => {
        &[(concat!($file, ".gguf"), include_bytes!(concat!("../fixtures/gguf/", $file, ".gguf")))]
    };
}

macro_rules! case {
    ($name:literal, $files:expr, $logits:literal, $variant:literal, $choice:ident, $expect:ident) => {
        Case {
            name: $name,
            files: $files,
            logits: include_bytes!(concat!("../fixtures/", $logits, "-logits.safetensors")),
            variant: $variant,
            activations: ActivationChoice::$choice,
            expect: Expectation::$expect,
        }
    };
}

/// All checkpoints with reference logits.
#[rustfmt::skip]
pub const CASES: &[Case] = &[
    case!("bitnet-a packed", folder!("bitnet-a-relu2-packed"), "bitnet-a-relu2", "packed_f32", Auto, Exact),
    case!("bitnet-a packed, float", folder!("bitnet-a-relu2-packed"), "bitnet-a-relu2", "packed_f32_noactquant", Float, Exact),
    case!("bitnet-a master", folder!("bitnet-a-relu2-bf16"), "bitnet-a-relu2", "online_f32", Auto, MayFlip),
    case!("bitnet-a I2_S", gguf!("bitnet-a-relu2-i2_s"), "bitnet-a-relu2", "packed_f32", Auto, Exact),
    case!("bitnet-a TQ2_0", gguf!("bitnet-a-relu2-tq2_0"), "bitnet-a-relu2", "packed_f32", Auto, Exact),
    case!("bitnet-b packed", folder!("bitnet-b-odd-packed"), "bitnet-b-odd", "packed_f32", Auto, Exact),
    case!("bitnet-c packed", folder!("bitnet-c-silu-packed"), "bitnet-c-silu", "packed_f32", Auto, MayFlip),
    case!("bitnet-c I2_S", gguf!("bitnet-c-silu-i2_s"), "bitnet-c-silu", "packed_f32", Auto, MayFlip),
    case!("bitnet-c TQ1_0", gguf!("bitnet-c-silu-tq1_0"), "bitnet-c-silu", "packed_f32", Auto, MayFlip),
    case!("bitnet-c TQ2_0", gguf!("bitnet-c-silu-tq2_0"), "bitnet-c-silu", "packed_f32", Auto, MayFlip),
    case!("llama packed", folder!("llama-bitlinear-packed"), "llama-bitlinear", "packed_f32", Auto, Exact),
    case!("llama I2_S", gguf!("llama-bitlinear-i2_s"), "llama-bitlinear", "packed_f32", Auto, Exact),
    case!("llama TQ2_0", gguf!("llama-bitlinear-tq2_0"), "llama-bitlinear", "f32_noactquant", Auto, HalfScales),
    case!("qwen3 unpacked", folder!("qwen3-g128-unpacked"), "qwen3-g128", "f32", Auto, Exact),
    case!("qwen3 MLX", folder!("qwen3-g128-mlx2bit"), "qwen3-g128", "f32", Auto, Exact),
    case!("qwen3 Q2_0 g64", gguf!("qwen3-g128-q2_0_g64"), "qwen3-g128", "f32", Auto, Exact),
    case!("qwen3 Q2_0 g128", gguf!("qwen3-g128-q2_0_g128_prism"), "qwen3-g128", "f32", Auto, Exact),
    case!("qwen3 PQ2_0", gguf!("qwen3-g128-pq2_0"), "qwen3-g128", "f32", Auto, Exact),
    case!("qwen3 PTQ1_0", gguf!("qwen3-g128-ptq1_0"), "qwen3-g128", "f32", Auto, Exact),
    case!("qwen3 YaRN", gguf!("qwen3-g128-yarn-q2_0_g64"), "qwen3-g128-yarn", "f32", Auto, Exact),
];

/// The embedded model.
pub const EMBEDDED: &[(&str, &[u8])] = &[
    ("config.json", include_bytes!("../../models/bit-7m/config.json")),
    ("generation_config.json", include_bytes!("../../models/bit-7m/generation_config.json")),
    ("special_tokens_map.json", include_bytes!("../../models/bit-7m/special_tokens_map.json")),
    ("tokenizer.json", include_bytes!("../../models/bit-7m/tokenizer.json")),
    ("tokenizer_config.json", include_bytes!("../../models/bit-7m/tokenizer_config.json")),
    ("model.safetensors", include_bytes!("../../models/bit-7m/model.safetensors")),
];

/// Loads a case, feeding its bytes in pieces.
pub fn load(case: &Case) -> Engine<Cpu> {
    load_on(Cpu::default(), case)
}

pub fn load_on<B: Backend>(backend: B, case: &Case) -> Engine<B> {
    now(load_case(backend, case))
}

/// Loads a case on a device that may make the caller wait.
pub async fn load_case<B: Backend>(backend: B, case: &Case) -> Engine<B> {
    let read = ReadOptions { activations: case.activations, ..Default::default() };
    load_files_on(backend, case.files, read).await
}

pub fn load_files(files: &[(&str, &[u8])], read: ReadOptions) -> Engine<Cpu> {
    now(load_files_on(Cpu::default(), files, read))
}

pub fn load_files_with(cpu: Cpu, files: &[(&str, &[u8])], options: EngineOptions) -> Engine<Cpu> {
    now(load_all(cpu, files, options))
}

pub async fn load_files_on<B: Backend>(backend: B, files: &[(&str, &[u8])], read: ReadOptions) -> Engine<B> {
    load_all(backend, files, EngineOptions { kv_format: KvFormat::F32, read, ..Default::default() }).await
}

async fn load_all<B: Backend>(backend: B, files: &[(&str, &[u8])], options: EngineOptions) -> Engine<B> {
    let mut loader = Loader::new(backend, options).unwrap();
    for (name, bytes) in files {
        loader.begin_file(name, Some(bytes.len() as u64)).unwrap();
        for piece in bytes.chunks(100_003) {
            loader.push(piece).unwrap();
        }
        loader.end_file().unwrap();
    }
    loader.finish().await.unwrap()
}

/// The result of a future that is ready at once, as those of the CPU are, and natively those of a GPU.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future has to wait for something"),
    }
}

/// How two sets of logits differ.
pub struct Difference {
    pub max: f32,
    pub mean: f32,
    /// Share of the rows whose likeliest token is the same.
    pub argmax_agreement: f32,
}

pub fn compare(ours: &[f32], wanted: &[f32], vocab: usize) -> Difference {
    assert_eq!(ours.len(), wanted.len());
    let rows = ours.len() / vocab;
    let same = ours
        .chunks_exact(vocab)
        .zip(wanted.chunks_exact(vocab))
        .filter(|(ours, wanted)| argmax(ours) == argmax(wanted))
        .count();
    let sum: f32 = ours.iter().zip(wanted).map(|(a, b)| (a - b).abs()).sum();
    Difference {
        max: max_difference(ours, wanted),
        mean: sum / ours.len() as f32,
        argmax_agreement: same as f32 / rows as f32,
    }
}

pub fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

pub fn tensor_f32(file: &[u8], name: &str) -> Vec<f32> {
    try_tensor_f32(file, name).unwrap_or_else(|| panic!("the fixture has no {name}"))
}

pub fn try_tensor_f32(file: &[u8], name: &str) -> Option<Vec<f32>> {
    let file = SafeTensors::deserialize(file).unwrap();
    let tensor = file.tensor(name).ok()?;
    assert_eq!(tensor.dtype(), Dtype::F32);
    Some(tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

pub fn tensor_ids(file: &[u8], name: &str) -> Vec<u32> {
    try_tensor_ids(file, name).unwrap_or_else(|| panic!("the fixture has no {name}"))
}

pub fn try_tensor_ids(file: &[u8], name: &str) -> Option<Vec<u32>> {
    let file = SafeTensors::deserialize(file).unwrap();
    let tensor = file.tensor(name).ok()?;
    assert_eq!(tensor.dtype(), Dtype::I32);
    Some(tensor.data().chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}
