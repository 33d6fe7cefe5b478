//! Chooses the kernels that a device runs, by what they give and how long they take and not by the device's name.
//!
//! Each candidate first runs a model of one small layer, which the CPU runs too: a kernel that does not compile
//! would otherwise be silent and give zeros. Those that agree are timed on the products of one layer in the
//! shape of the model that is loaded.

use super::device::unavailable;
use super::variants::{InputPreparation, IntegerDot, Team, Variants};
use super::{Gpu, GpuMatrix};
use crate::backend::cpu::Cpu;
use crate::backend::{Backend, KvFormat, Norm, TokenIds};
use crate::generate::sampler::{SamplerOptions, argmax};
use crate::model::{Layer, LinearInput, LogitRows, ModelConfig, Rope, RopeScaling, Transformer, Weights};
use crate::quant::{DenseEncoding, DenseMatrix, Matrix, Scales, TernaryMatrix};
use crate::{Error, Result};
use web_time::{Duration, Instant};

/// Invocations that share a row where subgroups are not to be had.
const WORKGROUP_LANES: u32 = 16;
/// How far logits may be from the CPU's, relative to the largest: an int8 code that falls the other way moves
/// them by less, a wrong kernel by more.
const TOLERANCE: f32 = 0.05;

/// Sets the device's variants to the fastest that give right results. Returns what was wrong with others.
///
/// # Errors
/// `unsupported_browser` when none does, `device_lost`, `out_of_memory`.
pub async fn select(gpu: &Gpu, config: &ModelConfig, kv_format: KvFormat) -> Result<Vec<String>> {
    let mut trial = Trial { gpu, config: small(config), kv_format, shape: config, wrong: Vec::new() };
    if let Some(forced) = gpu.forced {
        trial.check(forced).await?;
        return Ok(Vec::new());
    }
    // Compiling takes longer than anything else here, so only what may win on some device is tried.
    let candidate = |team, dot| Variants { team, dot, preparation: InputPreparation::Separate, tiles: dot };
    let layer = TimedLayer::new(gpu, config)?;
    let mut results = Vec::new();
    if gpu.context.device.has_subgroups {
        results.extend(trial.run(candidate(Team::Subgroup, IntegerDot::Packed), &layer).await?);
    }
    if results.is_empty() {
        let team = Team::Workgroup(WORKGROUP_LANES);
        results.extend(trial.run(candidate(team, IntegerDot::Packed), &layer).await?);
    }
    results.extend(trial.run(candidate(Team::Lane, IntegerDot::Singles), &layer).await?);
    let quickest = |time: fn(&Speed) -> Duration| {
        results.iter().copied().min_by_key(|(_, speed)| time(speed)).map(|(variants, _)| variants)
    };
    let (Some(row), Some(tile)) = (quickest(|speed| speed.row), quickest(|speed| speed.tile)) else {
        return Err(unavailable(&format!("the GPU's results are wrong ({})", trial.wrong.join("; "))));
    };
    let best = Variants { tiles: tile.tiles, ..row };
    let inline = Variants { preparation: InputPreparation::Inline, ..best };
    results.retain(|(variants, _)| *variants == row);
    results.extend(trial.run(inline, &layer).await?);
    let is_inline = results.iter().min_by_key(|(_, speed)| speed.row).is_some_and(|(won, _)| *won == inline);
    gpu.context.variants.set(if is_inline { inline } else { best });
    Ok(trial.wrong)
}

/// Variants on trial.
struct Trial<'a> {
    gpu: &'a Gpu,
    /// Of the small model that is compared.
    config: ModelConfig,
    kv_format: KvFormat,
    /// Of the model that is timed.
    shape: &'a ModelConfig,
    wrong: Vec<String>,
}

/// How long products take.
#[derive(Clone, Copy)]
struct Speed {
    /// Those of one token in one layer.
    row: Duration,
    /// One of several tokens.
    tile: Duration,
}

impl Trial<'_> {
    /// Checks and times a candidate; `None`, and a note of it, where it is wrong.
    async fn run(&mut self, candidate: Variants, layer: &TimedLayer) -> Result<Option<(Variants, Speed)>> {
        match self.check(candidate).await {
            Ok(()) => {}
            Err(error @ (Error::DeviceLost(_) | Error::OutOfMemory(_))) => return Err(error),
            Err(error) => {
                self.wrong.push(format!("{candidate}: {error}"));
                return Ok(None);
            }
        }
        let row = time(self.gpu, || layer.run_row(self.gpu, self.shape)).await?;
        let tile = time(self.gpu, || layer.run_tile(self.gpu, self.shape)).await?;
        Ok(Some((candidate, Speed { row, tile })))
    }

    /// Compares a small model with the CPU.
    async fn check(&self, candidate: Variants) -> Result<()> {
        self.gpu.context.variants.set(candidate);
        let scope = self.gpu.context.device.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let ours = run_small(self.gpu, &self.config, self.kv_format).await;
        if let Some(error) = scope.pop().await {
            return Err(unavailable(&format!("a kernel does not compile ({error})")));
        }
        let (ours, theirs) = (ours?, run_small(&Cpu::default(), &self.config, self.kv_format).await?);
        let size = theirs.logits.iter().fold(0.0f32, |max, logit| max.max(logit.abs()));
        let pairs = ours.logits.iter().zip(&theirs.logits);
        // A comparison with what is not a number is false.
        let agree = pairs.clone().all(|(a, b)| (a - b).abs() <= TOLERANCE * size);
        let last = &ours.logits[ours.logits.len() - self.config.vocab_size..];
        if agree && ours.chosen == argmax(last) {
            return Ok(());
        }
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        Err(unavailable(&format!("the GPU's results are wrong (by {worst}, of {size})")))
    }
}

/// What the small model gave.
struct SmallResult {
    logits: Vec<f32>,
    /// The likeliest token, by the device's own choice.
    chosen: u32,
}

/// A prompt, then two tokens one by one.
async fn run_small<B: Backend + Clone>(
    backend: &B,
    config: &ModelConfig,
    kv_format: KvFormat,
) -> Result<SmallResult> {
    let weights = small_weights(backend, config)?;
    let model = Transformer::new(backend.clone(), config.clone(), weights)?;
    let mut cache = backend.new_cache(model.cache_shape(kv_format))?;
    let mut sampler = backend.new_sampler(SamplerOptions::greedy(), &[], config.vocab_size)?;
    let mut logits = Vec::new();
    let mut chosen = 0;
    for ids in [&[3, 1, 4, 1, 5][..], &[9], &[2]] {
        let rows = if ids.len() > 1 { LogitRows::All } else { LogitRows::Last };
        if let Some(step) = model.forward(TokenIds::Given(ids), &mut cache, rows)? {
            logits.extend(backend.read(&step).await?);
            let last = backend.last_rows(step, 1);
            chosen = backend.chosen(backend.choose(last, ids.len(), &mut sampler)).await?;
        }
    }
    Ok(SmallResult { logits, chosen })
}

/// The model's own kind of layer and heads, in small.
fn small(config: &ModelConfig) -> ModelConfig {
    ModelConfig {
        vocab_size: 101,
        hidden_size: 136,
        intermediate_size: 200,
        num_layers: 1,
        max_context: 64,
        rope: Rope { theta: 10_000.0, scaling: RopeScaling::None },
        ..config.clone()
    }
}

fn small_weights<B: Backend>(backend: &B, config: &ModelConfig) -> Result<Weights<B::Matrix, B::Vector>> {
    let mut random = Noise(1);
    let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
    let mut embedding = DenseMatrix::zeroed(config.vocab_size, hidden, DenseEncoding::F16)?;
    for row in 0..config.vocab_size {
        let values: Vec<f32> = (0..hidden).map(|_| random.next()).collect();
        DenseEncoding::F16.encode(&values, embedding.row_mut(row));
    }
    let mut matrix = |rows: usize, cols: usize| -> Result<B::Matrix> {
        let codes: Vec<u8> = (0..rows * cols).map(|_| ((random.next() + 1.0) * 1.5) as u8).collect();
        let scales = match config.linear_input {
            LinearInput::Int8 => Scales::Tensor(0.05),
            LinearInput::Float => {
                let groups = rows * cols.div_ceil(128);
                Scales::Group {
                    size: 128,
                    values: (0..groups).map(|i| 0.04 + (i % 3) as f32 * 0.01).collect(),
                }
            }
        };
        backend.upload_matrix(Matrix::Ternary(TernaryMatrix::from_codes(rows, cols, &codes, scales)?))
    };
    let (query, kv) = (config.query_width(), config.kv_width());
    let matrices = [
        matrix(query, hidden)?,
        matrix(kv, hidden)?,
        matrix(kv, hidden)?,
        matrix(hidden, query)?,
        matrix(ffn, hidden)?,
        matrix(ffn, hidden)?,
        matrix(hidden, ffn)?,
    ];
    let [query_matrix, key, value, attn_output, gate, up, down] = matrices;
    let vector = |len: usize| backend.upload_vector((0..len).map(|i| 0.9 + (i % 5) as f32 * 0.05).collect());
    let optional = |is_there: bool, len: usize| is_there.then(|| vector(len)).transpose();
    let layer = Layer {
        attn_norm: vector(hidden)?,
        query: query_matrix,
        key,
        value,
        query_norm: optional(config.qk_norm, config.head_dim)?,
        key_norm: optional(config.qk_norm, config.head_dim)?,
        attn_sub_norm: optional(config.sub_norms, query)?,
        attn_output,
        ffn_norm: vector(hidden)?,
        gate,
        up,
        ffn_sub_norm: optional(config.sub_norms, ffn)?,
        down,
    };
    Ok(Weights {
        embedding: backend.upload_matrix(Matrix::Dense(embedding))?,
        output_norm: vector(hidden)?,
        head: None,
        layers: vec![layer],
    })
}

/// Numbers in −1…1 that are the same everywhere (a linear congruential generator).
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// How long `run` takes.
async fn time(gpu: &Gpu, run: impl Fn()) -> Result<Duration> {
    run();
    gpu.settle().await?;
    // Clocks of browsers are coarse: repeat until there is something to measure.
    let mut repetitions = 1u32;
    loop {
        let start = Instant::now();
        for _ in 0..repetitions {
            run();
        }
        gpu.settle().await?;
        let duration = start.elapsed();
        if duration >= LONG_ENOUGH || repetitions >= MOST_REPETITIONS {
            return Ok(duration / repetitions);
        }
        repetitions *= 4;
    }
}

const LONG_ENOUGH: Duration = Duration::from_millis(6);
const MOST_REPETITIONS: u32 = 256;

/// One layer whose weights are all alike: how long a product takes does not depend on them.
struct TimedLayer {
    norm: wgpu::Buffer,
    query: GpuMatrix,
    attn_output: GpuMatrix,
    gate: GpuMatrix,
    up: GpuMatrix,
    down: GpuMatrix,
    /// Rows for a tile of several tokens: enough of them for the workgroups that a device runs at a time.
    tile: GpuMatrix,
}

/// Tokens and rows of the product that is timed for prompts.
const TILE_TOKENS: usize = 32;
const TILE_ROWS: usize = 1024;

impl TimedLayer {
    /// In the shape of `config`.
    fn new(gpu: &Gpu, config: &ModelConfig) -> Result<Self> {
        let (hidden, ffn, query) = (config.hidden_size, config.intermediate_size, config.query_width());
        let matrix = |rows, cols| {
            gpu.upload_matrix(Matrix::Ternary(TernaryMatrix::blank(rows, cols, Scales::Tensor(0.01))?))
        };
        Ok(Self {
            norm: gpu.upload_vector(vec![1.0; hidden.max(ffn).max(query)])?,
            query: matrix(query, hidden)?,
            attn_output: matrix(hidden, query)?,
            gate: matrix(ffn, hidden)?,
            up: matrix(ffn, hidden)?,
            down: matrix(hidden, ffn)?,
            tile: matrix(TILE_ROWS.min(ffn), hidden)?,
        })
    }

    /// The products of one token.
    fn run_row(&self, gpu: &Gpu, config: &ModelConfig) {
        let norm = || Norm { weight: &self.norm, eps: config.norm_eps };
        let mut hidden = gpu.tensor(config.hidden_size, &vec![0.5; config.hidden_size]);
        let x = gpu.norm_quantize(&hidden, norm(), config.linear_input);
        let [query] = gpu.linears([&self.query], &x);
        let heads = gpu.norm_quantize(&query, norm(), config.linear_input);
        gpu.linear_add(&self.attn_output, &heads, &mut hidden);
        let x = gpu.norm_quantize(&hidden, norm(), config.linear_input);
        let inner = gpu.gate_up(&self.gate, &self.up, &x, config.activation);
        let inner = gpu.norm_quantize(&inner, norm(), config.linear_input);
        gpu.linear_add(&self.down, &inner, &mut hidden);
    }

    /// A product of several tokens.
    fn run_tile(&self, gpu: &Gpu, config: &ModelConfig) {
        let x = gpu.tensor(config.hidden_size, &vec![0.5; TILE_TOKENS * config.hidden_size]);
        gpu.linear(&self.tile, &gpu.quantize(x, config.linear_input));
    }
}
