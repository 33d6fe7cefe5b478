//! `Model`: a loaded model, one job at a time, each step short.

use super::convert::{JsResult, from_js, to_js};
use crate::backend::KvFormat;
use crate::backend::cpu::Cpu;
use crate::checkpoint::{GenerationDefaults, SpecialTokens};
use crate::engine::Engine;
use crate::generate::{EvaluationKind, GenerationOptions};
use crate::model::ModelConfig;
use crate::text::{Message, RenderOptions};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

/// `model.info()`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info<'a> {
    config: &'a ModelConfig,
    context_length: usize,
    kv_cache: KvFormat,
    has_tokenizer: bool,
    has_chat_template: bool,
    special_tokens: &'a SpecialTokens,
    defaults: &'a GenerationDefaults,
    memory: Memory,
    kernel: &'static str,
    threads: usize,
}

/// Bytes in use.
#[derive(Serialize)]
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
    engine: Engine<Cpu>,
}

impl Model {
    pub(super) fn new(engine: Engine<Cpu>) -> Self {
        Self { engine }
    }
}

#[wasm_bindgen]
impl Model {
    pub fn info(&self) -> JsResult<JsValue> {
        let engine = &self.engine;
        to_js(&Info {
            config: engine.config(),
            context_length: engine.context_length(),
            kv_cache: engine.kv_format(),
            has_tokenizer: engine.has_tokenizer(),
            has_chat_template: engine.has_chat_template(),
            special_tokens: engine.special(),
            defaults: engine.defaults(),
            memory: Memory {
                weights: engine.weight_bytes(),
                kv_cache: engine.session().cache().resident_bytes(),
            },
            kernel: engine.transformer().backend().kernel_name(),
            threads: engine.transformer().backend().threads(),
        })
    }

    pub fn tokenize(&self, text: &str, add_special_tokens: bool) -> JsResult<Vec<u32>> {
        Ok(self.engine.tokenizer()?.encode(text, add_special_tokens)?)
    }

    pub fn detokenize(&self, ids: &[u32], skip_special_tokens: bool) -> JsResult<String> {
        Ok(self.engine.tokenizer()?.decode(ids, skip_special_tokens)?)
    }

    #[wasm_bindgen(js_name = applyChatTemplate)]
    pub fn apply_chat_template(&self, messages: JsValue, options: JsValue) -> JsResult<String> {
        let (messages, options) = chat_arguments(messages, options)?;
        Ok(self.engine.apply_chat_template(&messages, options)?)
    }

    #[wasm_bindgen(js_name = encodeChat)]
    pub fn encode_chat(&self, messages: JsValue, options: JsValue) -> JsResult<Vec<u32>> {
        let (messages, options) = chat_arguments(messages, options)?;
        Ok(self.engine.encode_chat(&messages, options)?)
    }

    #[wasm_bindgen(js_name = startGeneration)]
    pub fn start_generation(&mut self, prompt_ids: Vec<u32>, options: JsValue) -> JsResult<()> {
        let options: GenerationOptions = from_js(options, "the generation options are not understood")?;
        Ok(self.engine.start_generation(prompt_ids, &options)?)
    }

    pub fn step(&mut self) -> JsResult<JsValue> {
        to_js(&self.engine.step()?)
    }

    #[wasm_bindgen(js_name = startEvaluation)]
    pub fn start_evaluation(&mut self, ids: Vec<u32>, what: JsValue) -> JsResult<()> {
        let kind: Option<EvaluationKind> = from_js(what, "an evaluation is of \"logits\" or \"nll\"")?;
        Ok(self.engine.start_evaluation(ids, kind.unwrap_or(EvaluationKind::Logits))?)
    }

    #[wasm_bindgen(js_name = evaluateStep)]
    pub fn evaluate_step(&mut self) -> JsResult<JsValue> {
        let step = self.engine.evaluate_step()?;
        let result = js_sys::Object::new();
        let set = |key: &str, value: JsValue| js_sys::Reflect::set(&result, &key.into(), &value).map(|_| ());
        set("done", (step.done as f64).into())?;
        set("total", (step.total as f64).into())?;
        set("values", js_sys::Float32Array::from(&step.values[..]).into())?;
        Ok(result.into())
    }

    #[wasm_bindgen(js_name = resetCache)]
    pub fn reset_cache(&mut self) -> JsResult<()> {
        Ok(self.engine.reset_cache()?)
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
