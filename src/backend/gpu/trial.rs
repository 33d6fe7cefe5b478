//! A model of one layer, in the shape of the model that is loaded, on which kernels are timed and compared with the
//! CPU's: what is compiled for it is what the model runs.

use super::Gpu;
use super::device::unavailable;
use super::tensor::GpuTensor;
use super::variants::Variants;
use crate::Result;
use crate::backend::cpu::Cpu;
use crate::backend::{Backend, KvFormat, Norm, TokenIds};
use crate::generate::sampler::{SamplerOptions, argmax};
use crate::model::{Layer, LinearInput, LogitRows, ModelConfig, Rope, RopeScaling, Transformer, Weights};
use crate::quant::{DenseEncoding, DenseMatrix, Int8Matrix, Matrix, Scales, TernaryMatrix};
use web_time::{Duration, Instant};

/// How far logits may be from the CPU's, relative to the largest: an int8 code that falls the other way moves
/// them by less, a wrong kernel by more.
const TOLERANCE: f32 = 0.05;
/// Few: all else costs as much as in the model itself.
const VOCABULARY: usize = 101;
/// Bytes of an embedding in halves from which on it is kept in bytes, unless someone asks for something else.
const LARGE_EMBEDDING: usize = 64 << 20;
/// Tokens of the product that is timed for prompts.
const TILE_TOKENS: usize = 32;

/// Kernels on trial.
pub struct Trial<'a> {
    gpu: &'a Gpu,
    model: Transformer<Gpu>,
    kv_format: KvFormat,
    /// What the CPU gives.
    wanted: Outcome,
    norm: wgpu::Buffer,
}

/// What the model gave.
struct Outcome {
    logits: Vec<f32>,
    /// The likeliest token after all, by the device's own choice.
    chosen: u32,
}

impl<'a> Trial<'a> {
    /// # Errors
    /// `out_of_memory`, `device_lost`.
    pub async fn new(gpu: &'a Gpu, config: &ModelConfig, kv_format: KvFormat) -> Result<Trial<'a>> {
        let is_large = 2 * config.vocab_size * config.hidden_size > LARGE_EMBEDDING;
        let config = ModelConfig {
            vocab_size: VOCABULARY,
            num_layers: 1,
            max_context: 64,
            rope: Rope { theta: 10_000.0, scaling: RopeScaling::None },
            ..config.clone()
        };
        let cpu = Cpu::default();
        let theirs = weights(&cpu, &config, is_large)?;
        let wanted = run(&Transformer::new(cpu, config.clone(), theirs)?, kv_format).await?;
        let ours = weights(gpu, &config, is_large)?;
        let norm = gpu.upload_vector(vec![1.0; config.hidden_size])?;
        let model = Transformer::new(gpu.clone(), config, ours)?;
        Ok(Trial { gpu, model, kv_format, wanted, norm })
    }

    /// Sets the device's variants and compares the model with the CPU's.
    ///
    /// # Errors
    /// `unsupported_browser` when they differ or a kernel does not compile; `device_lost`, `out_of_memory`.
    pub async fn check(&self, variants: Variants) -> Result<()> {
        let ours = self.with(variants, async || run(&self.model, self.kv_format).await).await?;
        let wanted = &self.wanted.logits;
        let size = wanted.iter().fold(0.0f32, |max, logit| max.max(logit.abs()));
        let pairs = ours.logits.iter().zip(wanted);
        // A comparison with what is not a number is false.
        let agree = pairs.clone().all(|(a, b)| (a - b).abs() <= TOLERANCE * size);
        let last = &ours.logits[ours.logits.len() - VOCABULARY..];
        if agree && ours.chosen == argmax(last) {
            return Ok(());
        }
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        Err(unavailable(&format!("the GPU's results are wrong (by {worst}, of {size})")))
    }

    /// How long the largest product of one token takes, with the making of its input.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub async fn time_row(&self, variants: Variants) -> Result<Duration> {
        let (config, layer) = (self.model.config(), self.layer());
        let hidden = self.hidden(1);
        let run = || {
            let norm = Norm { weight: &self.norm, eps: config.norm_eps };
            let x = self.gpu.norm_quantize(&hidden, norm, config.linear_input);
            self.gpu.gate_up(&layer.gate, &layer.up, &x, config.activation);
        };
        self.with(variants, async || time(self.gpu, run).await).await
    }

    /// How long a product of several tokens takes.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub async fn time_tile(&self, variants: Variants) -> Result<Duration> {
        let config = self.model.config();
        let hidden = self.gpu.tensor(config.hidden_size, &vec![0.5; TILE_TOKENS * config.hidden_size]);
        let norm = Norm { weight: &self.norm, eps: config.norm_eps };
        let x = self.gpu.norm_quantize(&hidden, norm, config.linear_input);
        let run = || drop(self.gpu.linear(&self.layer().query, &x));
        self.with(variants, async || time(self.gpu, run).await).await
    }

    fn layer(&self) -> &Layer<super::GpuMatrix, wgpu::Buffer> {
        &self.model.weights().layers[0]
    }

    fn hidden(&self, tokens: usize) -> GpuTensor {
        GpuTensor::new(&self.gpu.context, tokens, self.model.config().hidden_size)
    }

    /// Runs something with these variants; what does not compile is an error.
    async fn with<T>(&self, variants: Variants, run: impl AsyncFnOnce() -> Result<T>) -> Result<T> {
        self.gpu.context.variants.set(variants);
        let device = &self.gpu.context.device;
        // Of the shader's making, and of the driver's.
        let invalid = device.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = device.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let result = run().await;
        let (internal, invalid) = (internal.pop(), invalid.pop());
        let refused = internal.await.or(invalid.await);
        verdict(device.check(), refused, result)
    }
}

/// What came of a trial. Where memory is full or the device is lost, everything after it is invalid, so that what
/// is wrong with the device comes before what was refused.
fn verdict<T>(device: Result<()>, refused: Option<wgpu::Error>, result: Result<T>) -> Result<T> {
    device?;
    match refused {
        Some(error) => Err(unavailable(&format!("a kernel does not compile ({error})"))),
        None => result,
    }
}

/// A prompt, then two tokens one by one.
async fn run<B: Backend>(model: &Transformer<B>, kv_format: KvFormat) -> Result<Outcome> {
    let backend = model.backend();
    let mut cache = backend.new_cache(model.cache_shape(kv_format))?;
    let mut sampler = backend.new_sampler(SamplerOptions::greedy(), &[], VOCABULARY)?;
    let mut outcome = Outcome { logits: Vec::new(), chosen: 0 };
    for ids in [&[3, 1, 4, 1, 5, 9, 2, 6, 5][..], &[35], &[89]] {
        if let Some(step) = model.forward(TokenIds::Given(ids), &mut cache, LogitRows::Last)? {
            outcome.logits.extend(backend.read(&step).await?);
            outcome.chosen = backend.chosen(backend.choose(step, ids.len(), &mut sampler)).await?;
        }
    }
    Ok(outcome)
}

fn weights<B: Backend>(
    backend: &B,
    config: &ModelConfig,
    is_large: bool,
) -> Result<Weights<B::Matrix, B::Vector>> {
    let mut noise = Noise(1);
    let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
    let (query, kv) = (config.query_width(), config.kv_width());
    let embedding = embedding(&mut noise, hidden, is_large)?;
    let mut matrix =
        |rows, cols| backend.upload_matrix(ternary(&mut noise, rows, cols, config.linear_input)?);
    let [query_matrix, key, value] = [matrix(query, hidden)?, matrix(kv, hidden)?, matrix(kv, hidden)?];
    let attn_output = matrix(hidden, query)?;
    let [gate, up, down] = [matrix(ffn, hidden)?, matrix(ffn, hidden)?, matrix(hidden, ffn)?];
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
        embedding: backend.upload_matrix(embedding)?,
        output_norm: vector(hidden)?,
        head: None,
        layers: vec![layer],
    })
}

fn embedding(noise: &mut Noise, hidden: usize, is_large: bool) -> Result<Matrix> {
    let mut row = || (0..hidden).map(|_| noise.next()).collect::<Vec<f32>>();
    if is_large {
        let mut matrix = Int8Matrix::unfilled(VOCABULARY, hidden)?;
        for index in 0..VOCABULARY {
            matrix.put_row(index, &row())?;
        }
        return Ok(Matrix::Int8(matrix));
    }
    let mut matrix = DenseMatrix::zeroed(VOCABULARY, hidden, DenseEncoding::F16)?;
    for index in 0..VOCABULARY {
        DenseEncoding::F16.encode(&row(), matrix.row_mut(index));
    }
    Ok(Matrix::Dense(matrix))
}

/// A matrix whose rows repeat a few random ones, which are quicker to make: a prime number of them, so that rows that
/// are mistaken for one another differ.
fn ternary(noise: &mut Noise, rows: usize, cols: usize, input: LinearInput) -> Result<Matrix> {
    const KINDS: usize = 17;
    let mut kind = || (0..cols).map(|_| ((noise.next() + 1.0) * 1.5) as u8).collect::<Vec<u8>>();
    let kinds: Vec<Vec<u8>> = (0..KINDS).map(|_| kind()).collect();
    // Outputs as large as inputs.
    let scale = 1.0 / (cols as f32).sqrt();
    let scales = match input {
        LinearInput::Int8 => Scales::Tensor(scale),
        LinearInput::Float => {
            let groups = rows * cols.div_ceil(128);
            let values = (0..groups).map(|i| scale * (0.8 + (i % 3) as f32 * 0.2)).collect();
            Scales::Group { size: 128, values }
        }
    };
    let mut matrix = TernaryMatrix::unfilled(rows, cols, scales)?;
    for row in 0..rows {
        matrix.put_row(row, &kinds[row % KINDS]);
    }
    Ok(Matrix::Ternary(matrix))
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
    // The first one also compiles.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn internal() -> Option<wgpu::Error> {
        Some(wgpu::Error::Internal { source: "driver".into(), description: "no registers left".into() })
    }

    #[test]
    fn what_is_wrong_with_the_device_is_not_taken_for_a_kernel_that_does_not_compile() {
        for error in [Error::OutOfMemory("full".into()), Error::DeviceLost("gone".into())] {
            assert_eq!(verdict(Err(error.clone()), internal(), Ok(())), Err(error));
        }
    }

    #[test]
    fn what_the_driver_does_not_compile_is_wrong_though_something_was_read() {
        let error = verdict(Ok(()), internal(), Ok(())).unwrap_err();
        assert_eq!(error.code(), "unsupported_browser");
        assert!(error.to_string().contains("no registers left"), "{error}");
        assert_eq!(verdict(Ok(()), None, Ok(7)), Ok(7));
    }
}
