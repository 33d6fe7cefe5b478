//! The small files that accompany safetensors weights: configs, tokenizer, chat template, shard index.

use serde_json::Value;

use super::sniff;
use crate::Result;
use crate::error::corrupt;

/// The most that a side file may have.
const MAX_BYTES: usize = 256 << 20;

/// Which side file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideKind {
    Config,
    GenerationConfig,
    Tokenizer,
    TokenizerConfig,
    SpecialTokensMap,
    ChatTemplate,
    Index,
}

impl SideKind {
    /// The kind that a bare file name stands for.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "config.json" => SideKind::Config,
            "generation_config.json" => SideKind::GenerationConfig,
            "tokenizer.json" => SideKind::Tokenizer,
            "tokenizer_config.json" => SideKind::TokenizerConfig,
            "special_tokens_map.json" => SideKind::SpecialTokensMap,
            "chat_template.jinja" => SideKind::ChatTemplate,
            _ if name.ends_with(".index.json") => SideKind::Index,
            _ => return None,
        })
    }
}

/// What the side files said. JSON that was not given is `Null`.
#[derive(Debug, Default)]
pub(super) struct SideFiles {
    pub config: Value,
    pub generation_config: Value,
    pub tokenizer_config: Value,
    pub special_tokens_map: Value,
    pub tokenizer: Option<Vec<u8>>,
    pub chat_template: Option<String>,
    pub index: Option<ShardIndex>,
}

/// `model.safetensors.index.json`.
#[derive(Debug)]
pub(super) struct ShardIndex {
    /// File names, sorted.
    pub shards: Vec<String>,
    pub tensors: usize,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A side file that is being read.
pub(super) struct SideFile {
    kind: SideKind,
    bytes: Vec<u8>,
}

impl SideFile {
    pub fn new(kind: SideKind) -> Self {
        Self { kind, bytes: Vec::new() }
    }

    pub fn push(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        if self.bytes.len() + bytes.len() > MAX_BYTES {
            return Err(corrupt!("{name} is larger than {} MB", MAX_BYTES >> 20));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Interprets the file.
    ///
    /// # Errors
    /// `corrupt_file` when it is not what its name says.
    pub fn finish(mut self, name: &str, files: &mut SideFiles) -> Result<()> {
        sniff::refuse_non_files(name, &self.bytes)?;
        // Editors on Windows put one in front of UTF-8 text; JSON does not allow it.
        if self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.bytes.drain(..BYTE_ORDER_MARK.len());
        }
        match self.kind {
            SideKind::Config => files.config = object(name, &self.bytes)?,
            SideKind::GenerationConfig => files.generation_config = object(name, &self.bytes)?,
            SideKind::TokenizerConfig => files.tokenizer_config = object(name, &self.bytes)?,
            SideKind::SpecialTokensMap => files.special_tokens_map = object(name, &self.bytes)?,
            SideKind::Index => files.index = Some(index(name, &object(name, &self.bytes)?)?),
            SideKind::Tokenizer => files.tokenizer = Some(self.bytes),
            SideKind::ChatTemplate => {
                let text = String::from_utf8(self.bytes)
                    .map_err(|_| corrupt!("{name} is not UTF-8 text: it is damaged"))?;
                files.chat_template = Some(text);
            }
        }
        Ok(())
    }
}

fn object(name: &str, bytes: &[u8]) -> Result<Value> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| corrupt!("{name} cannot be read as JSON ({error}): it is damaged or cut short"))?;
    match value.is_object() {
        true => Ok(value),
        false => Err(corrupt!("{name} is not a JSON object")),
    }
}

fn index(name: &str, json: &Value) -> Result<ShardIndex> {
    let Some(map) = json["weight_map"].as_object() else {
        return Err(corrupt!("{name} has no weight_map: it is not an index of safetensors shards"));
    };
    let mut shards = Vec::with_capacity(map.len());
    for file in map.values() {
        // The names become parts of URLs and paths.
        let plain = |file: &&str| !file.contains(['/', '\\']) && file.ends_with(".safetensors");
        match file.as_str().filter(plain) {
            Some(file) => shards.push(file.to_owned()),
            None => {
                return Err(corrupt!("{name} lists {file}, which is not the name of a safetensors file"));
            }
        }
    }
    shards.sort_unstable();
    shards.dedup();
    Ok(ShardIndex { shards, tensors: map.len() })
}
