//! The GPU backend: WebGPU in a browser, Vulkan, Metal or Direct3D natively, all through wgpu and the shaders
//! of `shaders/`. Verbs only record; work is submitted when something has to be known.

mod arena;
mod attention;
mod cache;
mod context;
mod device;
mod embed;
mod kernels;
mod linear;
mod prepare;
mod recorder;
mod rope;
mod sample;
mod selection;
mod tensor;
mod trial;
mod variants;
mod weights;

pub use cache::GpuCache;
pub use device::{DeviceOptions, PowerPreference};
pub use recorder::Counters;
pub use sample::{Choice, GpuSampler};
pub use tensor::{GpuInput, GpuTensor};
pub use variants::{InputPreparation, Rows, Team, Tiles, Variants};
pub use weights::GpuMatrix;

use super::{AttentionInput, Backend, CacheShape, KvFormat, Norm, TokenIds};
use crate::Result;
use crate::generate::sampler::SamplerOptions;
use crate::model::{Activation, LinearInput, ModelConfig, RopeFrequencies};
use crate::quant::Matrix;
use context::Context;
use device::Device;
use linear::Epilogue;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use tensor::InputNorm;

/// A GPU. Clones are the same device.
#[derive(Clone)]
pub struct Gpu {
    context: Rc<Context>,
    /// The variants that the caller insists on.
    forced: Option<Variants>,
    /// What was wrong with variants that were tried.
    rejected: Rc<RefCell<Vec<String>>>,
}

impl Gpu {
    /// Opens a GPU. Which kernels run is chosen when a model is [put on it](Backend::prepare), unless `forced`
    /// says.
    ///
    /// # Errors
    /// `unsupported_browser` when there is none that can be used, or it cannot run what is forced.
    pub async fn open(options: &DeviceOptions, forced: Option<Variants>) -> Result<Self> {
        Self::open_with_shaders(options, forced, kernels::text).await
    }

    async fn open_with_shaders(
        options: &DeviceOptions,
        forced: Option<Variants>,
        shaders: kernels::Texts,
    ) -> Result<Self> {
        let device = Device::open(options).await?;
        if forced.is_some_and(Variants::needs_subgroups) && !device.has_subgroups {
            return Err(device::unavailable("the GPU has no subgroups"));
        }
        let team = if device.has_subgroups { Team::Subgroup } else { Team::Lane };
        let variants = forced.unwrap_or(Variants {
            rows: Rows::Packed(team),
            preparation: InputPreparation::Inline,
            tiles: Tiles::Packed,
        });
        let context = Rc::new(Context::new(device, variants, shaders));
        Ok(Self { context, forced, rejected: Rc::default() })
    }

    /// What was wrong with kernels that were tried and are not used, for people to read.
    pub fn rejected(&self) -> Vec<String> {
        self.rejected.borrow().clone()
    }

    /// Takes the device away, as a crash of its driver would.
    pub fn destroy(&self) {
        self.context.device.device.destroy();
    }

    /// Activations from the host, row-major.
    pub fn tensor(&self, width: usize, values: &[f32]) -> GpuTensor {
        let [tensor] = self.tensors([(width, values)]);
        tensor
    }

    /// Activations of the same tokens from the host, widths and values, in one buffer as the products of one
    /// input are.
    pub fn tensors<const N: usize>(&self, tensors: [(usize, &[f32]); N]) -> [GpuTensor; N] {
        // What is recorded may use the same buffer.
        self.context.submit();
        let tokens = tensors.first().map_or(0, |(width, values)| values.len() / width);
        let outs = GpuTensor::side_by_side(&self.context, tokens, tensors.map(|(width, _)| width));
        for (out, (_, values)) in outs.iter().zip(tensors) {
            let at = (size_of::<f32>() * out.offset) as u64;
            self.context.device.queue.write_buffer(out.buffer(), at, bytemuck::cast_slice(values));
        }
        outs
    }

    /// What was done since the device was opened.
    pub fn counters(&self) -> Counters {
        self.context.recorder.counters()
    }

    /// Which kernels run, as `model.info.kernel` shows it.
    pub fn kernel_name(&self) -> String {
        self.context.variants.get().to_string()
    }

    /// Vendor and name, as far as the system tells.
    pub fn description(&self) -> String {
        let info = &self.context.device.info;
        let parts = [&info.name, &info.driver].into_iter().filter(|part| !part.is_empty());
        parts.cloned().collect::<Vec<_>>().join(", ")
    }
}

impl Backend for Gpu {
    const PREFILL_CHUNK: usize = 128;
    const IN_FLIGHT: usize = 4;
    const PART_BYTES: Option<usize> = Some(64 << 20);

    type Matrix = GpuMatrix;
    type Vector = wgpu::Buffer;
    type Tensor = GpuTensor;
    type Input = GpuInput;
    type Cache = GpuCache;
    type Angles = wgpu::Buffer;
    type Sampler = GpuSampler;
    type Choice = Choice;

    async fn prepare(&self, config: &ModelConfig, kv_format: KvFormat) -> Result<()> {
        let wrong = selection::select(self, config, kv_format).await?;
        self.rejected.replace(wrong);
        Ok(())
    }

    fn upload_matrix(&self, matrix: Matrix) -> Result<GpuMatrix> {
        GpuMatrix::upload(&self.context, &matrix)
    }

    fn stack(&self, parts: Vec<GpuMatrix>) -> Result<GpuMatrix> {
        GpuMatrix::stack(parts)
    }

    fn upload_vector(&self, vector: Vec<f32>) -> Result<wgpu::Buffer> {
        let buffer = self.context.storage(size_of_val(&vector[..]) as u64, "vector");
        self.context.device.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&vector));
        self.context.device.check()?;
        Ok(buffer)
    }

    /// Halves in the place of 16-bit integers: a GPU converts them for nothing.
    fn kv_format(&self, wanted: KvFormat) -> KvFormat {
        match wanted {
            KvFormat::F32 => KvFormat::F32,
            KvFormat::F16 | KvFormat::Q16 => KvFormat::F16,
            KvFormat::Q8 => KvFormat::Q8,
        }
    }

    fn new_cache(&self, shape: CacheShape) -> Result<GpuCache> {
        let shape = CacheShape { format: self.kv_format(shape.format), ..shape };
        // Bind groups would keep the caches of the past alive.
        self.context.recorder.forget_groups();
        Ok(GpuCache::new(shape))
    }

    fn embed(&self, table: &GpuMatrix, ids: TokenIds<'_, Choice>, position: usize) -> GpuTensor {
        if let TokenIds::Given(ids) = ids {
            embed::set_input(&self.context, position, ids);
        }
        embed::embed(&self.context, table, ids.count())
    }

    fn norm_quantize(&self, x: &GpuTensor, norm: Norm<'_, wgpu::Buffer>, input: LinearInput) -> GpuInput {
        let norm = InputNorm { weight: norm.weight.clone(), eps: norm.eps };
        GpuInput::new(x.clone(), Some(norm), input)
    }

    fn quantize(&self, x: GpuTensor, input: LinearInput) -> GpuInput {
        GpuInput::new(x, None, input)
    }

    fn linears<const N: usize>(&self, weights: [&GpuMatrix; N], x: &GpuInput) -> [GpuTensor; N] {
        let widths = weights.map(GpuMatrix::rows);
        let outs = GpuTensor::side_by_side(&self.context, x.source.tokens, widths);
        linear::linears(&self.context, weights, x, outs.each_ref(), Epilogue::Store);
        outs
    }

    fn linear_add(&self, weight: &GpuMatrix, x: &GpuInput, residual: &mut GpuTensor) {
        linear::linears(&self.context, [weight], x, [residual], Epilogue::Add);
    }

    fn gate_up(&self, gate: &GpuMatrix, up: &GpuMatrix, x: &GpuInput, act: Activation) -> GpuTensor {
        linear::gate_up(&self.context, gate, up, x, act)
    }

    fn angles(&self, frequencies: &RopeFrequencies, positions: Range<usize>) -> wgpu::Buffer {
        self.context.rope.upto(&self.context, frequencies, positions.end)
    }

    fn attend(
        &self,
        input: AttentionInput<'_, Self>,
        angles: &wgpu::Buffer,
        cache: &mut GpuCache,
    ) -> Result<GpuTensor> {
        attention::attend(&self.context, input, angles, cache)
    }

    fn commit(&self, cache: &mut GpuCache, tokens: usize) {
        cache.commit(tokens);
    }

    fn last_rows(&self, x: GpuTensor, rows: usize) -> GpuTensor {
        let skipped = x.tokens - rows;
        GpuTensor { offset: x.offset + skipped * x.width, tokens: rows, ..x }
    }

    fn new_sampler(&self, options: SamplerOptions, said: &[u32], vocab_size: usize) -> Result<GpuSampler> {
        let sampler = GpuSampler::new(&self.context, options, said, vocab_size);
        self.context.device.check()?;
        Ok(sampler)
    }

    fn choose(&self, logits: GpuTensor, tokens: usize, sampler: &mut GpuSampler) -> Choice {
        sampler.choose(&self.context, &logits, tokens)
    }

    async fn chosen(&self, choice: Choice) -> Result<u32> {
        choice.id(&self.context).await
    }

    async fn settle(&self) -> Result<()> {
        self.context.submit();
        self.context.device.wait().await;
        self.context.device.check()
    }

    async fn read(&self, x: &GpuTensor) -> Result<Vec<f32>> {
        let joined = x.partials.map(|_| prepare::joined(&self.context, x));
        let x = joined.as_ref().unwrap_or(x);
        let bytes = (4 * x.tokens * x.width) as u64;
        let staging = self.context.device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("reading"),
            size: bytes,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let device = &self.context.device;
        self.context.recorder.copy(device, (x.buffer(), 4 * x.offset as u64), (&staging, 0), bytes);
        self.context.submit();
        self.context.recorder.count(|counters| counters.bytes_read += bytes);
        let data = device.map(&staging, bytes).await?;
        Ok(bytemuck::pod_collect_to_vec(&data))
    }
}
