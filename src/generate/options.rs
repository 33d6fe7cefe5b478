//! What a caller may ask of a generation, and what happens where the caller is silent.

use super::sampler::SamplerOptions;
use crate::Result;
use crate::checkpoint::GenerationDefaults;
use crate::error::invalid;
use serde::Deserialize;

/// Options of one generation. What is left out takes the checkpoint's recommendation
/// (generation_config.json), then greedy decoding until the context is full.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GenerationOptions {
    /// Most tokens to generate.
    pub max_tokens: Option<u32>,
    /// 0 is greedy; logits are divided by it.
    pub temperature: Option<f32>,
    /// Keep the k most likely tokens; 0 keeps all.
    pub top_k: Option<u32>,
    /// Keep the most likely tokens whose probabilities sum to at least this.
    pub top_p: Option<f32>,
    /// Drop tokens less likely than this share of the most likely one.
    pub min_p: Option<f32>,
    /// Above 1 makes tokens already in the text less likely (<https://arxiv.org/abs/1909.05858>).
    pub repetition_penalty: Option<f32>,
    /// The same seed gives the same text.
    pub seed: Option<u64>,
    /// Texts that end the generation; they are not part of the result.
    pub stop: Vec<String>,
    /// Token ids that end the generation besides the model's own.
    pub stop_tokens: Vec<u32>,
    /// Go on through the model's end-of-sequence tokens.
    pub ignore_eos: bool,
    /// The result is a text of its own, as an answer in a chat is, and not the continuation of the
    /// prompt's: a space that the tokenizer puts in front of every text is not part of it.
    pub new_text: bool,
    /// Tokens of the result that an earlier run of the same generation has given: they are run with the prompt, and
    /// what follows them is given.
    pub generated: Vec<u32>,
}

impl GenerationOptions {
    /// Sampling options with `defaults` filled in.
    ///
    /// # Errors
    /// `invalid_argument` for a value outside its range.
    pub fn sampler(&self, defaults: &GenerationDefaults) -> Result<SamplerOptions> {
        let options = SamplerOptions {
            temperature: self.temperature.or(defaults.temperature).unwrap_or(0.0),
            top_k: self.top_k.or(defaults.top_k).unwrap_or(0) as usize,
            top_p: self.top_p.or(defaults.top_p).unwrap_or(1.0),
            min_p: self.min_p.or(defaults.min_p).unwrap_or(0.0),
            repetition_penalty: self.repetition_penalty.or(defaults.repetition_penalty).unwrap_or(1.0),
            seed: self.seed.unwrap_or(0),
            drawn: self.generated.len() as u64,
        };
        check("temperature", options.temperature, 0.0..=100.0)?;
        check("topP", options.top_p, 0.0..=1.0)?;
        check("minP", options.min_p, 0.0..=1.0)?;
        check("repetitionPenalty", options.repetition_penalty, 0.01..=100.0)?;
        if self.max_tokens == Some(0) {
            return Err(invalid!("maxTokens must be at least 1"));
        }
        if self.stop.iter().any(String::is_empty) {
            return Err(invalid!("a stop string must not be empty"));
        }
        Ok(options)
    }
}

fn check(name: &str, value: f32, range: std::ops::RangeInclusive<f32>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(invalid!("{name} must be between {} and {}, not {value}", range.start(), range.end()))
}
