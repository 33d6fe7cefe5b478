//! `Model`: a loaded model, one job at a time, each step short.

use super::convert::{JsResult, from_js, to_js};
use super::engine::{AnyEngine, Slot, at_once_or_promise, on_device};
use crate::backend::KvFormat;
use crate::backend::gpu::Counters;
use crate::checkpoint::{GenerationDefaults, SpecialTokens};
use crate::engine::TextTools;
use crate::error::invalid;
use crate::generate::{EvaluationKind, GenerationOptions};
use crate::model::ModelConfig;
use crate::text::{Message, RenderOptions};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// `model.info()`
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    config: ModelConfig,
    context_length: usize,
    kv_cache: KvFormat,
    has_tokenizer: bool,
    has_chat_template: bool,
    special_tokens: SpecialTokens,
    defaults: GenerationDefaults,
    memory: Memory,
    device: &'static str,
    /// The GPU, as far as the browser tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    adapter: Option<String>,
    kernel: String,
    /// Kernels of the GPU that gave wrong results, and how.
    rejected_kernels: Vec<String>,
    threads: usize,
    /// What the GPU was given to do so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<GpuWork>,
}

/// Counts since the device was opened.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct GpuWork {
    dispatches: usize,
    submits: usize,
    bytes_read: u64,
}

impl From<Counters> for GpuWork {
    fn from(Counters { dispatches, submits, bytes_read, .. }: Counters) -> Self {
        Self { dispatches, submits, bytes_read }
    }
}

/// Bytes in use.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    weights: usize,
    kv_cache: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct TemplateOptions {
    /// End with the beginning of the assistant's turn.
    add_generation_prompt: bool,
    /// Tool definitions.
    tools: Option<serde_json::Value>,
    /// Further variables of the template (`enable_thinking` …).
    variables: serde_json::Map<String, serde_json::Value>,
}

impl Default for TemplateOptions {
    fn default() -> Self {
        Self { add_generation_prompt: true, tools: None, variables: Default::default() }
    }
}

impl From<TemplateOptions> for RenderOptions {
    fn from(options: TemplateOptions) -> Self {
        RenderOptions {
            add_generation_prompt: options.add_generation_prompt,
            tools: options.tools,
            extra: options.variables,
            local_time: Some(local_time()),
            ..Default::default()
        }
    }
}

/// A loaded model.
#[wasm_bindgen]
pub struct Model {
    info: Info,
    text: Rc<TextTools>,
    engine: Slot,
}

impl Model {
    pub(super) fn new(engine: AnyEngine) -> Self {
        let (device, adapter, kernel, rejected_kernels, threads) = match &engine {
            AnyEngine::Cpu(engine) => {
                let cpu = engine.transformer().backend();
                ("wasm", None, cpu.kernel_name().to_owned(), Vec::new(), cpu.threads())
            }
            AnyEngine::Gpu(engine) => {
                let gpu = engine.transformer().backend();
                ("webgpu", Some(gpu.description()), gpu.kernel_name(), gpu.rejected(), 1)
            }
        };
        on_device!(AnyEngine, &engine, inner => {
            let text = inner.text().clone();
            let info = Info {
                config: inner.config().clone(),
                context_length: inner.context_length(),
                kv_cache: inner.kv_format(),
                has_tokenizer: text.has_tokenizer(),
                has_chat_template: text.has_chat_template(),
                special_tokens: inner.special().clone(),
                defaults: inner.defaults().clone(),
                memory: Memory { weights: inner.weight_bytes(), kv_cache: 0 },
                device,
                adapter,
                kernel,
                rejected_kernels,
                threads,
                gpu: None,
            };
            Self { info, text, engine: Rc::new(Cell::new(Some(engine))) }
        })
    }

    /// Gives the engine to `work`, at once.
    fn with_engine<T>(&mut self, work: impl FnOnce(&mut AnyEngine) -> T) -> JsResult<T> {
        let mut engine = take(&self.engine)?;
        let result = work(&mut engine);
        self.engine.set(Some(engine));
        Ok(result)
    }
}

/// Takes the engine along for a step.
fn take(slot: &Slot) -> JsResult<AnyEngine> {
    slot.take().ok_or_else(|| invalid!("a step is still running: wait for its promise first").into())
}

#[wasm_bindgen]
impl Model {
    pub fn info(&mut self) -> JsResult<JsValue> {
        if let Ok((bytes, work)) = self.with_engine(|engine| (engine.cache_bytes(), engine.gpu_work())) {
            self.info.memory.kv_cache = bytes;
            self.info.gpu = work.map(GpuWork::from);
        }
        to_js(&self.info)
    }

    pub fn tokenize(&self, text: &str, add_special_tokens: bool) -> JsResult<Vec<u32>> {
        Ok(self.text.tokenizer()?.encode(text, add_special_tokens)?)
    }

    pub fn detokenize(&self, ids: &[u32], skip_special_tokens: bool) -> JsResult<String> {
        Ok(self.text.tokenizer()?.decode(ids, skip_special_tokens)?)
    }

    #[wasm_bindgen(js_name = applyChatTemplate)]
    pub fn apply_chat_template(&self, messages: JsValue, options: JsValue) -> JsResult<String> {
        let (messages, options) = chat_arguments(messages, options)?;
        Ok(self.text.apply_chat_template(&messages, options)?)
    }

    #[wasm_bindgen(js_name = encodeChat)]
    pub fn encode_chat(&self, messages: JsValue, options: JsValue) -> JsResult<Vec<u32>> {
        let (messages, options) = chat_arguments(messages, options)?;
        Ok(self.text.encode_chat(&messages, options)?)
    }

    #[wasm_bindgen(js_name = startGeneration)]
    pub fn start_generation(&mut self, prompt_ids: Vec<u32>, options: JsValue) -> JsResult<()> {
        let options: GenerationOptions = from_js(options, "the generation options are not understood")?;
        Ok(self.with_engine(|engine| engine.start_generation(prompt_ids, &options))??)
    }

    /// A step; on a GPU a promise of it, until which no other may be asked for.
    pub fn step(&mut self) -> JsResult<JsValue> {
        let slot = self.engine.clone();
        let mut engine = take(&slot)?;
        at_once_or_promise(async move {
            let step = engine.step().await;
            slot.set(Some(engine));
            to_js(&step?)
        })
    }

    #[wasm_bindgen(js_name = startEvaluation)]
    pub fn start_evaluation(&mut self, ids: Vec<u32>, what: JsValue) -> JsResult<()> {
        let kind: Option<EvaluationKind> = from_js(what, "an evaluation is of \"logits\" or \"nll\"")?;
        let kind = kind.unwrap_or(EvaluationKind::Logits);
        Ok(self.with_engine(|engine| engine.start_evaluation(ids, kind))??)
    }

    /// As [`Self::step`].
    #[wasm_bindgen(js_name = evaluateStep)]
    pub fn evaluate_step(&mut self) -> JsResult<JsValue> {
        let slot = self.engine.clone();
        let mut engine = take(&slot)?;
        at_once_or_promise(async move {
            let step = engine.evaluate_step().await;
            slot.set(Some(engine));
            let step = step?;
            let result = js_sys::Object::new();
            let set =
                |key: &str, value: JsValue| js_sys::Reflect::set(&result, &key.into(), &value).map(|_| ());
            set("done", (step.done as f64).into())?;
            set("total", (step.total as f64).into())?;
            set("values", js_sys::Float32Array::from(&step.values[..]).into())?;
            Ok(result.into())
        })
    }

    #[wasm_bindgen(js_name = resetCache)]
    pub fn reset_cache(&mut self) -> JsResult<()> {
        Ok(self.with_engine(AnyEngine::reset_cache)??)
    }
}

fn chat_arguments(messages: JsValue, options: JsValue) -> JsResult<(Vec<Message>, RenderOptions)> {
    let messages = from_js(messages, "messages must be a list of { role, content }")?;
    let options: TemplateOptions = from_js(options, "the template options are not understood")?;
    Ok((messages, options.into()))
}

/// Seconds since 1970-01-01 00:00 on the user's clock.
fn local_time() -> i64 {
    let now = js_sys::Date::new_0();
    (now.get_time() / 1000.0 - now.get_timezone_offset() * 60.0) as i64
}
