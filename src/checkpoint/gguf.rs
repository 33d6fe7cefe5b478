//! The header of a GGUF file, parsed as its bytes arrive: magic, metadata, tensor directory. Every count
//! and length is checked against what the file can hold before anything is allocated for it, and
//! nothing is parsed twice, however small the pieces are.

use std::collections::HashSet;

use super::metadata::{Array, Metadata, Value};
use crate::error::{corrupt, unsupported};
use crate::{Error, Result};

const MAX_TENSORS: u64 = 1 << 17;
const MAX_METADATA: u64 = 1 << 16;
const MAX_TEXT: u64 = 16 << 20;
const MAX_NAME: u64 = 1 << 12;
const MAX_DIMS: u32 = 4;
const MAX_ALIGNMENT: u64 = 1 << 20;
const MAX_HEADER: u64 = 512 << 20;
/// Bytes are taken over from the caller in pieces of this size, so that a whole file given at once is
/// not copied.
const PIECE: usize = 1 << 16;
/// The least bytes that a metadata entry, and a tensor's entry, take.
const MIN_METADATA_BYTES: u64 = 8 + 4 + 1;
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;

/// A parsed header.
pub(super) struct GgufHeader {
    pub metadata: Metadata,
    pub tensors: Vec<GgufTensor>,
    /// Where the header's own bytes end.
    pub end: u64,
    /// Tensor data starts at, and every tensor is padded to, a multiple of this.
    pub alignment: u64,
}

/// An entry of the tensor directory, unchecked but for its syntax.
pub(super) struct GgufTensor {
    pub name: String,
    /// Row length first, as the file has it.
    pub dims: Vec<u64>,
    pub type_id: u32,
    /// From the start of the tensor data.
    pub offset: u64,
}

/// Takes the bytes of a header in pieces of any size.
pub(super) struct HeaderParser {
    size: Option<u64>,
    buffer: Vec<u8>,
    /// Parsed bytes at the front of `buffer`, not dropped yet.
    at: usize,
    /// Bytes dropped from the front of `buffer` so far.
    dropped: u64,
    /// `buffer.len()` at which parsing can go on.
    needed: usize,
    state: State,
    metadata_left: u64,
    tensors_left: u64,
    metadata: Metadata,
    tensors: Vec<GgufTensor>,
    names: HashSet<String>,
}

enum State {
    Preamble,
    Metadata,
    Elements { key: String, kind: u32, left: u64, array: Array },
    Tensors,
}

/// Why parsing stopped.
enum Stop {
    /// `buffer` must grow to this length.
    More(usize),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

impl HeaderParser {
    /// `size` is the size of the whole file, where known.
    pub fn new(size: Option<u64>) -> Self {
        Self {
            size,
            buffer: Vec::new(),
            at: 0,
            dropped: 0,
            needed: 0,
            state: State::Preamble,
            metadata_left: 0,
            tensors_left: 0,
            metadata: Metadata::default(),
            tensors: Vec::new(),
            names: HashSet::new(),
        }
    }

    /// Takes the next bytes. Once the header is complete, returns it with the number of bytes of this
    /// piece that belonged to it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<(GgufHeader, usize)>> {
        let start = self.dropped + self.buffer.len() as u64;
        for piece in bytes.chunks(PIECE) {
            self.buffer.extend_from_slice(piece);
            if self.buffer.len() < self.needed {
                continue;
            }
            match self.parse() {
                Ok(()) => {
                    let header = self.take_header()?;
                    let used = (header.end - start) as usize;
                    return Ok(Some((header, used)));
                }
                Err(Stop::More(needed)) => self.needed = needed,
                Err(Stop::Failed(error)) => return Err(error),
            }
            if self.at >= PIECE {
                self.buffer.drain(..self.at);
                self.dropped += self.at as u64;
                self.needed -= self.at;
                self.at = 0;
            }
            if self.dropped > MAX_HEADER {
                return Err(corrupt!("the GGUF header is larger than {} MB", MAX_HEADER >> 20));
            }
        }
        Ok(None)
    }

    fn take_header(&mut self) -> Result<GgufHeader> {
        let alignment = match self.metadata.get("general.alignment") {
            None => 32,
            Some(value) => value.uint().unwrap_or(0),
        };
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return Err(corrupt!("general.alignment of the GGUF file is {alignment}, not a power of two"));
        }
        Ok(GgufHeader {
            metadata: std::mem::take(&mut self.metadata),
            tensors: std::mem::take(&mut self.tensors),
            end: self.dropped + self.at as u64,
            alignment,
        })
    }

    fn parse(&mut self) -> Result<(), Stop> {
        loop {
            match self.state {
                State::Preamble => self.preamble()?,
                State::Metadata if self.metadata_left == 0 => self.state = State::Tensors,
                State::Metadata => self.metadata_entry()?,
                State::Elements { .. } => self.elements()?,
                State::Tensors if self.tensors_left == 0 => return Ok(()),
                State::Tensors => self.tensor_entry()?,
            }
        }
    }

    fn cursor(&self) -> Cursor<'_> {
        let limit = self.size.unwrap_or(u64::MAX) - self.dropped.min(self.size.unwrap_or(u64::MAX));
        Cursor { bytes: &self.buffer, at: self.at, limit }
    }

    /// Bytes of the file after the parsed ones; a huge number where the size is unknown.
    fn bytes_left(&self) -> u64 {
        self.size.map_or(MAX_HEADER, |size| size.saturating_sub(self.dropped + self.at as u64))
    }

    fn preamble(&mut self) -> Result<(), Stop> {
        let mut cursor = self.cursor();
        if cursor.take::<4>()? != *b"GGUF" {
            return Err(corrupt!("this is not a GGUF file: it does not start with \"GGUF\"").into());
        }
        let version = cursor.u32()?;
        match version {
            2 | 3 => {}
            1 => {
                return Err(unsupported!(
                    "GGUF version 1 is obsolete: convert the file with a current llama.cpp, or get a \
                     newer copy"
                )
                .into());
            }
            _ if version.swap_bytes() <= 16 => {
                return Err(
                    unsupported!("this is a big-endian GGUF file: Sterna reads little-endian ones").into()
                );
            }
            _ => {
                return Err(
                    unsupported!("GGUF version {version} is unknown: Sterna reads versions 2 and 3").into()
                );
            }
        }
        let (tensors, metadata) = (cursor.u64()?, cursor.u64()?);
        self.at = cursor.at;
        let most = |bytes, cap: u64, left: u64| cap.min(left / bytes);
        let left = self.bytes_left();
        if tensors > most(MIN_TENSOR_BYTES, MAX_TENSORS, left) {
            return Err(corrupt!("the GGUF file claims to hold {tensors} tensors").into());
        }
        if metadata > most(MIN_METADATA_BYTES, MAX_METADATA, left) {
            return Err(corrupt!("the GGUF file claims to hold {metadata} metadata entries").into());
        }
        (self.tensors_left, self.metadata_left) = (tensors, metadata);
        self.state = State::Metadata;
        Ok(())
    }

    fn metadata_entry(&mut self) -> Result<(), Stop> {
        let mut cursor = self.cursor();
        let key = cursor.text(MAX_NAME, "a metadata key")?;
        let kind = cursor.u32()?;
        if kind != KIND_ARRAY {
            let value = cursor.value(kind, &key)?;
            self.at = cursor.at;
            return self.keep(key, value);
        }
        let (kind, count) = (cursor.u32()?, cursor.u64()?);
        self.at = cursor.at;
        let element = match kind {
            KIND_TEXT => 8,
            _ => scalar_bytes(kind).ok_or_else(|| unknown_kind(kind, &key))?,
        };
        if count > self.bytes_left() / element {
            return Err(corrupt!("the GGUF metadata array {key} claims {count} elements").into());
        }
        let array = Array::for_key(&key, kind == KIND_TEXT, count)?;
        self.state = State::Elements { key, kind, left: count, array };
        Ok(())
    }

    fn keep(&mut self, key: String, value: Value) -> Result<(), Stop> {
        self.metadata.insert(key, value)?;
        self.metadata_left -= 1;
        self.state = State::Metadata;
        Ok(())
    }

    fn elements(&mut self) -> Result<(), Stop> {
        let State::Elements { key, kind, mut left, mut array } =
            std::mem::replace(&mut self.state, State::Metadata)
        else {
            return Ok(());
        };
        let mut cursor = self.cursor();
        let mut at = cursor.at;
        let stop = loop {
            if left == 0 {
                break None;
            }
            match cursor.value(kind, &key) {
                Ok(value) => array.push(value),
                Err(stop) => break Some(stop),
            }
            at = cursor.at;
            left -= 1;
        };
        self.at = at;
        match stop {
            None => self.keep(key, Value::Array(array)),
            Some(stop) => {
                self.state = State::Elements { key, kind, left, array };
                Err(stop)
            }
        }
    }

    fn tensor_entry(&mut self) -> Result<(), Stop> {
        let mut cursor = self.cursor();
        let name = cursor.text(MAX_NAME, "a tensor name")?;
        let rank = cursor.u32()?;
        if rank == 0 || rank > MAX_DIMS {
            return Err(corrupt!("tensor {name:?} of the GGUF file has {rank} dimensions").into());
        }
        let mut dims = Vec::with_capacity(rank as usize);
        for _ in 0..rank {
            dims.push(cursor.u64()?);
        }
        let (type_id, offset) = (cursor.u32()?, cursor.u64()?);
        self.at = cursor.at;
        if !self.names.insert(name.clone()) {
            return Err(corrupt!("the GGUF file holds the tensor {name:?} twice").into());
        }
        self.tensors.push(GgufTensor { name, dims, type_id, offset });
        self.tensors_left -= 1;
        Ok(())
    }
}

const KIND_TEXT: u32 = 8;
const KIND_ARRAY: u32 = 9;

fn unknown_kind(kind: u32, key: &str) -> Error {
    if kind == KIND_ARRAY {
        return unsupported!("the GGUF metadata {key} is an array of arrays");
    }
    corrupt!("the GGUF metadata {key} has the unknown value type {kind}")
}

/// Bytes of a scalar metadata value.
fn scalar_bytes(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Reads values from the buffered part of the file.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the file ends, counted from the start of `bytes`.
    limit: u64,
}

impl Cursor<'_> {
    fn slice(&mut self, len: u64) -> Result<&[u8], Stop> {
        let end = self.at as u64 + len;
        if end > self.limit {
            return Err(corrupt!(
                "the GGUF header runs past the end of the file: the file is cut short or damaged; \
                 download it again"
            )
            .into());
        }
        let end = end as usize;
        let slice = self.bytes.get(self.at..end).ok_or(Stop::More(end))?;
        self.at = end;
        Ok(slice)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut raw = [0; N];
        raw.copy_from_slice(self.slice(N as u64)?);
        Ok(raw)
    }

    fn u32(&mut self) -> Result<u32, Stop> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Stop> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self, cap: u64, what: &str) -> Result<String, Stop> {
        let len = self.u64()?;
        if len > cap {
            return Err(corrupt!("{what} of the GGUF file claims a length of {len} bytes").into());
        }
        let bytes = self.slice(len)?;
        // Token texts of some vocabularies are cut inside a character; the tokenizer replaces them by
        // their byte tokens anyway.
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn value(&mut self, kind: u32, key: &str) -> Result<Value, Stop> {
        Ok(match kind {
            0 => Value::Int(self.take::<1>()?[0].into()),
            1 => Value::Int((self.take::<1>()?[0] as i8).into()),
            2 => Value::Int(u16::from_le_bytes(self.take()?).into()),
            3 => Value::Int(i16::from_le_bytes(self.take()?).into()),
            4 => Value::Int(self.u32()?.into()),
            5 => Value::Int(i32::from_le_bytes(self.take()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.take()?).into()),
            7 => Value::Bool(self.take::<1>()?[0] != 0),
            KIND_TEXT => Value::Text(self.text(MAX_TEXT, key)?),
            10 => Value::Int(self.u64()?.into()),
            11 => Value::Int(i64::from_le_bytes(self.take()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.take()?)),
            _ => return Err(unknown_kind(kind, key).into()),
        })
    }
}
