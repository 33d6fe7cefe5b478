//! The shape of `tokenizer.json`. `truncation` and `padding` are training settings and not read.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use tokenizers::AddedToken;

use crate::error::{Result, corrupt, unsupported};

#[derive(Deserialize)]
pub(super) struct TokenizerFile {
    #[serde(default)]
    pub added_tokens: Vec<AddedTokenEntry>,
    pub normalizer: Option<Value>,
    pub pre_tokenizer: Option<Value>,
    pub post_processor: Option<Value>,
    pub decoder: Option<Value>,
    pub model: ModelEntry,
}

#[derive(Deserialize)]
pub(super) struct AddedTokenEntry {
    pub id: u32,
    pub content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    /// `None` means: unless the token is special.
    normalized: Option<bool>,
    #[serde(default)]
    pub special: bool,
}

#[derive(Deserialize)]
pub(super) struct ModelEntry {
    pub dropout: Option<f32>,
    pub unk_token: Option<String>,
    pub continuing_subword_prefix: Option<String>,
    pub end_of_word_suffix: Option<String>,
    pub fuse_unk: Option<bool>,
    pub byte_fallback: Option<bool>,
    pub ignore_merges: Option<bool>,
    pub vocab: Vocabulary,
    pub merges: Vec<Merge>,
}

/// Token texts and their ids, in the order of the file.
pub(super) struct Vocabulary(pub Vec<(String, u32)>);

/// `["left", "right"]`, or `"left right"` in files from before 2024.
pub(super) struct Merge {
    pub left: String,
    pub right: String,
}

/// The one field that says what `model` is.
#[derive(Deserialize)]
struct Kind {
    model: ModelKind,
}

#[derive(Deserialize)]
struct ModelKind {
    #[serde(rename = "type")]
    kind: String,
}

impl TokenizerFile {
    /// Reads the file's fields.
    ///
    /// # Errors
    /// `unsupported_format` when the file is intact and its model is not BPE, else `corrupt_file`.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        // Other models have fields of other types, so the kind must be looked at before the fields.
        if let Ok(Kind { model: ModelKind { kind } }) = serde_json::from_slice(bytes)
            && kind != "BPE"
        {
            return Err(unsupported!(
                "The tokenizer's model {kind:?} is not supported; language models with ternary weights use BPE."
            ));
        }
        serde_json::from_slice(bytes).map_err(|error| {
            corrupt!("tokenizer.json cannot be read ({error}); it is truncated or not a tokenizer. Download it again.")
        })
    }
}

impl AddedTokenEntry {
    pub fn into_token(self) -> AddedToken {
        AddedToken::from(self.content, self.special)
            .single_word(self.single_word)
            .lstrip(self.lstrip)
            .rstrip(self.rstrip)
            .normalized(self.normalized.unwrap_or(!self.special))
    }
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocabulary;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a map from tokens to ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Vocabulary, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Vocabulary(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl<'de> Deserialize<'de> for Merge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Pair;
        impl<'de> Visitor<'de> for Pair {
            type Value = Merge;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a pair of tokens")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Merge, E> {
                match text.split_once(' ') {
                    Some((left, right)) if !right.contains(' ') => {
                        Ok(Merge { left: left.to_owned(), right: right.to_owned() })
                    }
                    _ => Err(E::custom(format!("the merge {text:?} is not a pair of tokens"))),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Merge, A::Error> {
                let pair = (seq.next_element()?, seq.next_element()?);
                let (Some(left), Some(right)) = pair else {
                    return Err(A::Error::custom("a merge has fewer than two tokens"));
                };
                if seq.next_element::<IgnoredAny>()?.is_some() {
                    return Err(A::Error::custom("a merge has more than two tokens"));
                }
                Ok(Merge { left, right })
            }
        }
        deserializer.deserialize_any(Pair)
    }
}
