//! `Loader`: the files of a checkpoint in, a `Model` out.

use super::convert::{JsResult, from_js, to_js};
use super::model::Model;
use crate::backend::cpu::Cpu;
use crate::backend::{CacheShape, KvFormat};
use crate::checkpoint::{ActivationChoice, EmbeddingFormat, I2sLayout, InspectReport, ReadOptions};
use crate::engine::{self, EngineOptions};
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
    inner: engine::Loader<Cpu>,
    cpu: Cpu,
}

#[wasm_bindgen]
impl Loader {
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue) -> JsResult<Loader> {
        let options: LoaderOptions = from_js(options, "the load options are not understood")?;
        let cpu = Cpu::with_threads(options.threads.0);
        let options = EngineOptions {
            context_length: options.context_length,
            kv_format: options.kv_cache,
            read: ReadOptions {
                activations: options.activations,
                i2s_layout: options.i2s_layout,
                embedding: options.embedding,
            },
        };
        Ok(Self { inner: engine::Loader::new(cpu.clone(), options)?, cpu })
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
        Ok(self.inner.begin_file(name, size)?)
    }

    pub fn push(&mut self, bytes: &[u8]) -> JsResult<()> {
        Ok(self.inner.push(bytes)?)
    }

    #[wasm_bindgen(js_name = endFile)]
    pub fn end_file(&mut self) -> JsResult<()> {
        Ok(self.inner.end_file()?)
    }

    #[wasm_bindgen(js_name = skipRest)]
    pub fn skip_rest(&mut self) {
        self.inner.skip_rest();
    }

    #[wasm_bindgen(js_name = headerReady)]
    pub fn header_ready(&self) -> bool {
        self.inner.reader().header_ready()
    }

    pub fn shards(&self) -> Vec<String> {
        self.inner.reader().shards()
    }

    pub fn inspect(&self) -> JsResult<JsValue> {
        let reader = self.inner.reader();
        let memory = reader.config().zip(self.inner.context_length()).map(|(config, context_length)| {
            let weights = reader.resident_bytes();
            let shape = CacheShape {
                layers: config.num_layers,
                kv_heads: config.num_kv_heads,
                head_dim: config.head_dim,
                format: self.inner.kv_format(),
            };
            let kv_cache = shape.bytes(context_length) as u64;
            MemoryNeed { weights, kv_cache, context_length, total: weights + kv_cache }
        });
        to_js(&Inspection { report: reader.inspect()?, memory })
    }

    pub fn progress(&self) -> JsResult<JsValue> {
        let (tensors_done, tensors_total) = self.inner.reader().progress();
        to_js(&Progress { tensors_done, tensors_total })
    }

    pub fn finish(self) -> JsResult<Model> {
        Ok(Model::new(self.inner.finish()?))
    }
}
