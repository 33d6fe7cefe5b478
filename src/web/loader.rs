//! `Loader`: the files of a checkpoint in, a `Model` out.

use super::convert::{JsResult, from_js, to_js};
use super::engine::{AnyEngine, AnyLoader, at_once_or_promise, on_device};
use super::model::Model;
use crate::backend::cpu::Cpu;
use crate::backend::gpu::{DeviceOptions, Gpu, PowerPreference};
use crate::backend::{Backend, CacheShape, KvFormat};
use crate::checkpoint::{
    ActivationChoice, CheckpointReader, EmbeddingFormat, I2sLayout, InspectReport, ReadOptions,
};
use crate::engine::{EngineOptions, Loader as EngineLoader};
use crate::error::invalid;
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct LoaderOptions {
    context_length: Option<usize>,
    kv_cache: KvFormat,
    activations: ActivationChoice,
    i2s_layout: I2sLayout,
    embedding: EmbeddingFormat,
    threads: Threads,
    gpu: GpuOptions,
}

impl LoaderOptions {
    fn engine(&self) -> EngineOptions {
        EngineOptions {
            context_length: self.context_length,
            kv_format: self.kv_cache,
            read: ReadOptions {
                activations: self.activations,
                i2s_layout: self.i2s_layout,
                embedding: self.embedding,
                ..Default::default()
            },
        }
    }
}

/// How a GPU is opened.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GpuOptions {
    power_preference: PowerPreference,
    /// Whether the page sees to it that devices are asked for the feature of this name.
    subgroups: bool,
}

/// How many threads compute, the one that calls among them.
#[derive(Deserialize)]
#[serde(transparent)]
struct Threads(usize);

impl Default for Threads {
    fn default() -> Self {
        Self(1)
    }
}

/// What `inspect` returns: the reader's report and the memory that running the model takes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspection {
    #[serde(flatten)]
    report: InspectReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryNeed>,
}

/// Bytes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryNeed {
    weights: u64,
    kv_cache: u64,
    context_length: usize,
    total: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    tensors_done: usize,
    tensors_total: usize,
}

/// Takes the files of one checkpoint, piece by piece.
#[wasm_bindgen]
pub struct Loader {
    inner: AnyLoader,
    /// Whose threads help; also where the model runs on a GPU, which needs none.
    cpu: Cpu,
}

#[wasm_bindgen]
impl Loader {
    /// A loader of models that run on the CPU.
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue) -> JsResult<Loader> {
        let options: LoaderOptions = from_js(options, NOT_UNDERSTOOD)?;
        let cpu = Cpu::with_threads(options.threads.0);
        let inner = AnyLoader::Cpu(Box::new(EngineLoader::new(cpu.clone(), options.engine())?));
        Ok(Self { inner, cpu })
    }

    /// A loader of models that run on the GPU, once one is open and was seen to compute right.
    #[wasm_bindgen(js_name = onGpu)]
    pub async fn on_gpu(options: JsValue) -> JsResult<Loader> {
        let options: LoaderOptions = from_js(options, NOT_UNDERSTOOD)?;
        let device = DeviceOptions {
            power: options.gpu.power_preference,
            subgroups: options.gpu.subgroups,
            ..Default::default()
        };
        let gpu = Gpu::open(&device, None).await?;
        let inner = AnyLoader::Gpu(Box::new(EngineLoader::new(gpu, options.engine())?));
        Ok(Self { inner, cpu: Cpu::default() })
    }

    /// A place for one more thread, for `serveThread` in a worker that shares this module's memory.
    #[wasm_bindgen(js_name = threadSeat)]
    pub fn thread_seat(&self) -> usize {
        self.cpu.seat().into_raw()
    }

    #[wasm_bindgen(js_name = beginFile)]
    pub fn begin_file(&mut self, name: &str, size: Option<f64>) -> JsResult<()> {
        let size = match size {
            None => None,
            Some(size) if size >= 0.0 && size.fract() == 0.0 => Some(size as u64),
            Some(size) => return Err(invalid!("a file's size cannot be {size}").into()),
        };
        Ok(on_device!(AnyLoader, &mut self.inner, loader => loader.begin_file(name, size))?)
    }

    pub fn push(&mut self, bytes: &[u8]) -> JsResult<()> {
        Ok(on_device!(AnyLoader, &mut self.inner, loader => loader.push(bytes))?)
    }

    /// Called between pushes: a promise where a GPU has to catch up before the next one.
    #[wasm_bindgen(js_name = catchUp)]
    pub fn catch_up(&mut self) -> JsResult<JsValue> {
        let waiting = match &mut self.inner {
            AnyLoader::Cpu(_) => None,
            AnyLoader::Gpu(loader) => loader.device_to_wait_for(),
        };
        let Some(gpu) = waiting else { return Ok(JsValue::UNDEFINED) };
        at_once_or_promise(async move {
            gpu.settle().await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    #[wasm_bindgen(js_name = endFile)]
    pub fn end_file(&mut self) -> JsResult<()> {
        Ok(on_device!(AnyLoader, &mut self.inner, loader => loader.end_file())?)
    }

    #[wasm_bindgen(js_name = skipRest)]
    pub fn skip_rest(&mut self) {
        on_device!(AnyLoader, &mut self.inner, loader => loader.skip_rest());
    }

    #[wasm_bindgen(js_name = headerReady)]
    pub fn header_ready(&self) -> bool {
        self.reader().header_ready()
    }

    pub fn shards(&self) -> Vec<String> {
        self.reader().shards()
    }

    pub fn inspect(&self) -> JsResult<JsValue> {
        let (context_length, format) = on_device!(AnyLoader, &self.inner, loader => {
            (loader.context_length(), loader.kv_format())
        });
        let reader = self.reader();
        let memory = reader.config().zip(context_length).map(|(config, context_length)| {
            let weights = reader.resident_bytes();
            let shape = CacheShape {
                layers: config.num_layers,
                kv_heads: config.num_kv_heads,
                head_dim: config.head_dim,
                format,
            };
            let kv_cache = shape.bytes(context_length) as u64;
            MemoryNeed { weights, kv_cache, context_length, total: weights + kv_cache }
        });
        to_js(&Inspection { report: reader.inspect()?, memory })
    }

    pub fn progress(&self) -> JsResult<JsValue> {
        let (tensors_done, tensors_total) = self.reader().progress();
        to_js(&Progress { tensors_done, tensors_total })
    }

    /// The model; on a GPU a promise of it.
    pub fn finish(self) -> JsResult<JsValue> {
        at_once_or_promise(async {
            let engine = match self.inner {
                AnyLoader::Cpu(loader) => AnyEngine::Cpu(Box::new(loader.finish().await?)),
                AnyLoader::Gpu(loader) => AnyEngine::Gpu(Box::new(loader.finish().await?)),
            };
            Ok(Model::new(engine).into())
        })
    }

    fn reader(&self) -> &CheckpointReader {
        on_device!(AnyLoader, &self.inner, loader => loader.reader())
    }
}

const NOT_UNDERSTOOD: &str = "the load options are not understood";
