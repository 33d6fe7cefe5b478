//! The header of a safetensors file: an 8-byte length, then JSON that lists every tensor with its type,
//! shape and place. Checked here: no tensor twice, shapes match byte counts, and the tensors cover the
//! file without holes or overlaps.

use std::fmt;

use safetensors::Dtype;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::entry::{Stored, TensorEntry};
use crate::Result;
use crate::error::corrupt;
use crate::quant::DenseEncoding;

/// The limit that the reference implementation sets.
pub(super) const MAX_HEADER: u64 = 100_000_000;
const MAX_TENSORS: usize = 1 << 17;
const LENGTH_BYTES: usize = 8;

/// A parsed header.
pub(super) struct SafetensorsHeader {
    /// In the order of their data.
    pub entries: Vec<TensorEntry>,
    pub metadata: Vec<(String, String)>,
    /// Where the header ends and the data starts.
    pub end: u64,
}

impl SafetensorsHeader {
    /// Where the data, and with it the file, ends.
    pub fn data_end(&self) -> u64 {
        self.entries.last().map_or(self.end, TensorEntry::end)
    }
}

/// Takes the bytes of a header in pieces of any size.
pub(super) struct HeaderParser {
    size: Option<u64>,
    buffer: Vec<u8>,
}

impl HeaderParser {
    /// `size` is the size of the whole file, where known.
    pub fn new(size: Option<u64>) -> Self {
        Self { size, buffer: Vec::new() }
    }

    /// Takes the next bytes. Once the header is complete, returns it with the number of bytes of this
    /// piece that belonged to it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<(SafetensorsHeader, usize)>> {
        let mut used = self.fill(bytes, LENGTH_BYTES);
        let Some(length) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u64::from_le_bytes(*length);
        let room = self.size.map_or(u64::MAX, |size| size.saturating_sub(LENGTH_BYTES as u64));
        if length > MAX_HEADER.min(room) {
            return Err(corrupt!(
                "the safetensors header claims {length} bytes, more than the file can hold: the file is \
                 cut short, damaged, or not a safetensors file"
            ));
        }
        let end = LENGTH_BYTES + length as usize;
        used += self.fill(&bytes[used..], end);
        if self.buffer.len() < end {
            return Ok(None);
        }
        let header = parse(&self.buffer[LENGTH_BYTES..], end as u64)?;
        self.buffer = Vec::new();
        Ok(Some((header, used)))
    }

    /// Moves bytes into the buffer until it holds `len`; returns how many.
    fn fill(&mut self, bytes: &[u8], len: usize) -> usize {
        let taken = len.saturating_sub(self.buffer.len()).min(bytes.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        taken
    }
}

fn parse(json: &[u8], end: u64) -> Result<SafetensorsHeader> {
    let directory: Directory = serde_json::from_slice(json)
        .map_err(|error| corrupt!("the safetensors header cannot be read: {error}"))?;
    let mut entries = Vec::with_capacity(directory.tensors.len());
    for (name, info) in directory.tensors {
        entries.push(info.into_entry(name, end)?);
    }
    entries.sort_by_key(|entry| (entry.offset, entry.bytes));
    let mut expected = end;
    for entry in &entries {
        if entry.offset != expected {
            return Err(corrupt!(
                "the tensor {:?} starts at byte {} of the safetensors file where {expected} was expected: \
                 tensors overlap or leave a hole",
                entry.name,
                entry.offset
            ));
        }
        expected = entry.end();
    }
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(corrupt!("the safetensors file holds the tensor {:?} twice", pair[0]));
    }
    Ok(SafetensorsHeader { entries, metadata: directory.metadata, end })
}

#[derive(Deserialize)]
struct Info {
    dtype: Dtype,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl Info {
    fn into_entry(self, name: String, data_start: u64) -> Result<TensorEntry> {
        let (from, to) = self.data_offsets;
        let elements = self.shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim));
        let bits = elements.and_then(|elements| elements.checked_mul(self.dtype.bitsize() as u64));
        let bytes = to.checked_sub(from).filter(|bytes| bits == bytes.checked_mul(8));
        let offset = data_start.checked_add(from).filter(|_| to < u64::MAX / 2);
        let (Some(bytes), Some(offset)) = (bytes, offset) else {
            return Err(corrupt!(
                "the tensor {name:?} of the safetensors file says {:?} of {}, which does not match its \
                 bytes {from}..{to}",
                self.shape,
                self.dtype
            ));
        };
        let stored = match self.dtype {
            Dtype::F32 => Stored::Dense(DenseEncoding::F32),
            Dtype::F16 => Stored::Dense(DenseEncoding::F16),
            Dtype::BF16 => Stored::Dense(DenseEncoding::BF16),
            other => Stored::Raw(other),
        };
        Ok(TensorEntry { name, shape: self.shape, stored, offset, bytes })
    }
}

/// The JSON object, keys in order and not deduplicated.
#[derive(Default)]
struct Directory {
    tensors: Vec<(String, Info)>,
    metadata: Vec<(String, String)>,
}

impl<'de> Deserialize<'de> for Directory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Directory;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Directory, A::Error> {
                let mut directory = Directory::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "__metadata__" {
                        let entries: serde_json::Map<String, serde_json::Value> = map.next_value()?;
                        directory.metadata = entries.iter().map(super::inspect::shown_json).collect();
                    } else if directory.tensors.len() == MAX_TENSORS {
                        return Err(A::Error::custom(format!("it lists more than {MAX_TENSORS} tensors")));
                    } else {
                        directory.tensors.push((key, map.next_value()?));
                    }
                }
                Ok(directory)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
