//! The key-value metadata of a GGUF file.

use std::collections::HashMap;

use crate::Result;
use crate::error::corrupt;

/// Elements for which room is made before they have arrived.
const RESERVED: u64 = 1 << 16;
/// Characters of a value that [`Metadata::shown`] keeps.
const SHOWN: usize = 120;

/// A metadata value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Int(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    Array(Array),
}

/// An array value. Only what a loader needs is kept; of other arrays just the length.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Array {
    Texts(Vec<String>),
    Floats(Vec<f32>),
    Ints(Vec<i32>),
    Dropped(u64),
}

impl Array {
    /// An empty array for `count` elements of the metadata `key`.
    pub fn for_key(key: &str, texts: bool, count: u64) -> Result<Self> {
        let room = count.min(RESERVED) as usize;
        let array = match key {
            "tokenizer.ggml.tokens" | "tokenizer.ggml.merges" => Array::Texts(Vec::with_capacity(room)),
            "tokenizer.ggml.scores" => Array::Floats(Vec::with_capacity(room)),
            "tokenizer.ggml.token_type" => Array::Ints(Vec::with_capacity(room)),
            _ => return Ok(Array::Dropped(0)),
        };
        if texts != matches!(array, Array::Texts(_)) {
            return Err(corrupt!("the GGUF metadata {key} has elements of the wrong type"));
        }
        Ok(array)
    }

    pub fn push(&mut self, value: Value) {
        match (self, value) {
            (Array::Texts(texts), Value::Text(text)) => texts.push(text),
            (Array::Floats(floats), Value::Float(float)) => floats.push(float as f32),
            (Array::Floats(floats), Value::Int(int)) => floats.push(int as f32),
            (Array::Ints(ints), Value::Int(int)) => ints.push(int as i32),
            (Array::Ints(ints), _) => ints.push(0),
            (Array::Floats(floats), _) => floats.push(0.0),
            (Array::Texts(texts), _) => texts.push(String::new()),
            (Array::Dropped(count), _) => *count += 1,
        }
    }

    fn len(&self) -> usize {
        match self {
            Array::Texts(texts) => texts.len(),
            Array::Floats(floats) => floats.len(),
            Array::Ints(ints) => ints.len(),
            Array::Dropped(count) => *count as usize,
        }
    }
}

impl Value {
    /// The value as an unsigned integer, if it is one.
    pub fn uint(&self) -> Option<u64> {
        match self {
            Value::Int(int) => u64::try_from(*int).ok(),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Value::Int(int) => int.to_string(),
            Value::Float(float) => format!("{float}"),
            Value::Bool(flag) => flag.to_string(),
            Value::Text(text) => shortened(text),
            Value::Array(array) => format!("[{} elements]", array.len()),
        }
    }
}

/// `text`, cut to a length that fits a line of a report.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// All metadata of a file, in its order.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    entries: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

impl Metadata {
    /// # Errors
    /// `corrupt_file` when the key is there already.
    pub fn insert(&mut self, key: String, value: Value) -> Result<()> {
        if self.index.insert(key.clone(), self.entries.len()).is_some() {
            return Err(corrupt!("the GGUF file has the metadata {key} twice"));
        }
        self.entries.push((key, value));
        Ok(())
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|at| &self.entries[*at].1)
    }

    /// The non-negative integer under `key`.
    ///
    /// # Errors
    /// `corrupt_file` when the value is something else.
    pub fn uint(&self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.uint() {
            Some(uint) => Ok(Some(uint)),
            None => Err(corrupt!("the GGUF metadata {key} is {}, not a count", value.shown())),
        }
    }

    /// The number under `key`.
    ///
    /// # Errors
    /// `corrupt_file` when the value is something else.
    pub fn float(&self, key: &str) -> Result<Option<f32>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Float(float)) => Ok(Some(*float as f32)),
            Some(Value::Int(int)) => Ok(Some(*int as f32)),
            Some(value) => Err(corrupt!("the GGUF metadata {key} is {}, not a number", value.shown())),
        }
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(flag) => Some(*flag),
            Value::Int(int) => Some(*int != 0),
            _ => None,
        }
    }

    /// A token id under `key`, if it is one.
    pub fn token(&self, key: &str) -> Option<u32> {
        self.get(key)?.uint().and_then(|id| u32::try_from(id).ok())
    }

    /// Moves an array of texts out.
    pub fn take_texts(&mut self, key: &str) -> Vec<String> {
        match self.get_mut(key) {
            Some(Value::Array(Array::Texts(texts))) => std::mem::take(texts),
            _ => Vec::new(),
        }
    }

    /// Moves an array of floats out.
    pub fn take_floats(&mut self, key: &str) -> Vec<f32> {
        match self.get_mut(key) {
            Some(Value::Array(Array::Floats(floats))) => std::mem::take(floats),
            _ => Vec::new(),
        }
    }

    /// Moves an array of integers out.
    pub fn take_ints(&mut self, key: &str) -> Vec<i32> {
        match self.get_mut(key) {
            Some(Value::Array(Array::Ints(ints))) => std::mem::take(ints),
            _ => Vec::new(),
        }
    }

    /// The number of elements of an array.
    pub fn array_len(&self, key: &str) -> Option<usize> {
        match self.get(key)? {
            Value::Array(array) => Some(array.len()),
            _ => None,
        }
    }

    /// Every entry as text, long values shortened.
    pub fn shown(&self) -> Vec<(String, String)> {
        self.entries.iter().map(|(key, value)| (key.clone(), value.shown())).collect()
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.index.get(key).map(|at| &mut self.entries[*at].1)
    }
}
