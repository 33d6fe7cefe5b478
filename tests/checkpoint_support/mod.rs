//! Reading fixtures and building small model files for the checkpoint tests.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use sterna::checkpoint::{Checkpoint, CheckpointReader, LoadedTensor, ReadOptions};
use sterna::model::{Role, Tensor};
use sterna::quant::{KernelScales, Matrix};
use sterna::{Error, Result};

/// A file by name.
pub type File = (String, Vec<u8>);

pub fn fixture(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder of the fixtures, side files first.
pub fn folder(name: &str) -> Vec<File> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let mut files: Vec<File> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|file| (file.clone(), fixture(&format!("{name}/{file}"))))
        .collect();
    files.sort_by_key(|(name, _)| (name.ends_with(".safetensors"), name.clone()));
    files
}

pub fn gguf(name: &str) -> Vec<File> {
    vec![(format!("{name}.gguf"), fixture(&format!("gguf/{name}.gguf")))]
}

pub const GGUFS: &[&str] = &[
    "bitnet-a-relu2-i2_s",
    "bitnet-a-relu2-tq2_0",
    "bitnet-c-silu-i2_s",
    "bitnet-c-silu-tq1_0",
    "bitnet-c-silu-tq2_0",
    "llama-bitlinear-i2_s",
    "llama-bitlinear-tq2_0",
    "qwen3-g128-q2_0_g64",
    "qwen3-g128-q2_0_g128_prism",
    "qwen3-g128-pq2_0",
    "qwen3-g128-ptq1_0",
    "qwen3-g128-yarn-q2_0_g64",
];

pub const FOLDERS: &[&str] = &[
    "bitnet-a-relu2-packed",
    "bitnet-a-relu2-bf16",
    "bitnet-b-odd-packed",
    "bitnet-c-silu-packed",
    "llama-bitlinear-packed",
    "qwen3-g128-unpacked",
    "qwen3-g128-mlx2bit",
];

/// A finished load.
pub struct Loaded {
    pub checkpoint: Checkpoint,
    pub tensors: BTreeMap<Role, Tensor<Matrix, Vec<f32>>>,
}

impl Loaded {
    pub fn matrix(&self, role: Role) -> &Matrix {
        match &self.tensors[&role] {
            Tensor::Matrix(matrix) => matrix,
            Tensor::Vector(_) => panic!("{role:?} is a vector"),
        }
    }

    pub fn scales(&self, role: Role) -> &KernelScales {
        match self.matrix(role) {
            Matrix::Ternary(matrix) => matrix.scales(),
            _ => panic!("{role:?} is not ternary"),
        }
    }

    /// All values of a tensor.
    pub fn values(&self, role: Role) -> Vec<f32> {
        match &self.tensors[&role] {
            Tensor::Vector(values) => values.clone(),
            Tensor::Matrix(matrix) => {
                let mut values = vec![0.0; matrix.rows() * matrix.cols()];
                for (row, out) in values.chunks_exact_mut(matrix.cols()).enumerate() {
                    matrix.decode_row(row, out);
                }
                values
            }
        }
    }

    /// Everything that a backend would see, to compare two loads.
    pub fn contents(&self) -> Vec<(Role, String, Vec<u8>)> {
        let contents = |(role, tensor): (&Role, &Tensor<Matrix, Vec<f32>>)| match tensor {
            Tensor::Vector(values) => (*role, format!("{values:?}"), Vec::new()),
            Tensor::Matrix(Matrix::Ternary(m)) => (*role, format!("{:?}", m.scales()), m.bytes().to_vec()),
            Tensor::Matrix(Matrix::Int8(m)) => {
                let rows = (0..m.rows()).flat_map(|row| m.row(row).iter().map(|byte| *byte as u8));
                (*role, "Int8".to_owned(), rows.collect())
            }
            Tensor::Matrix(Matrix::Int4(m)) => {
                let rows = (0..m.rows()).flat_map(|row| m.row(row));
                (*role, "Int4".to_owned(), rows.collect())
            }
            Tensor::Matrix(Matrix::Dense(m)) => {
                let rows = (0..m.rows()).flat_map(|row| m.row(row).to_vec()).collect();
                (*role, format!("{:?}", m.encoding()), rows)
            }
        };
        self.tensors.iter().map(contents).collect()
    }
}

pub fn read(files: &[File]) -> Result<Loaded> {
    read_with(files, ReadOptions::default(), true, |left| left)
}

/// Reads files in pieces whose sizes `piece` decides from what is left.
pub fn read_with(
    files: &[File],
    options: ReadOptions,
    size_known: bool,
    mut piece: impl FnMut(usize) -> usize,
) -> Result<Loaded> {
    let mut reader = CheckpointReader::new(options);
    let mut tensors = Vec::new();
    for (name, bytes) in files {
        reader.begin_file(name, size_known.then_some(bytes.len() as u64))?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(piece(rest.len()).clamp(1, rest.len()));
            reader.push(now)?;
            tensors.extend(reader.take_tensors());
            rest = later;
        }
        reader.end_file()?;
    }
    let (checkpoint, last) = reader.finish()?;
    tensors.extend(last);
    let mut map = BTreeMap::new();
    for LoadedTensor { role, value, more_rows } in tensors {
        assert!(!more_rows, "{role:?} comes in parts, which were not asked for");
        assert!(map.insert(role, value).is_none(), "{role:?} came twice");
    }
    Ok(Loaded { checkpoint, tensors: map })
}

/// The error that reading `files` gives, whether or not the size is known.
pub fn error_of(files: &[File]) -> Error {
    let known = read_with(files, ReadOptions::default(), true, |left| left);
    let unknown = read_with(files, ReadOptions::default(), false, |left| left.min(1000));
    let (Err(known), Err(unknown)) = (known, unknown) else { panic!("the files were accepted") };
    assert_eq!(known.code(), unknown.code(), "{known} / {unknown}");
    known
}

/// Asserts an error's code and that its message has the words.
#[track_caller]
pub fn assert_error(error: &Error, code: &str, words: &[&str]) {
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for word in words {
        assert!(message.contains(word), "{message:?} lacks {word:?}");
    }
}

/// A GGUF file to be written.
#[derive(Clone)]
pub struct GgufFile {
    pub version: u32,
    pub metadata: Vec<(String, Meta)>,
    pub tensors: Vec<GgufTensor>,
    pub alignment: usize,
    pub counts: Option<(u64, u64)>,
}

#[derive(Clone)]
pub struct GgufTensor {
    pub name: String,
    /// Row length first.
    pub dims: Vec<u64>,
    pub type_id: u32,
    pub data: Vec<u8>,
    /// Instead of the right one.
    pub offset: Option<u64>,
}

#[derive(Clone)]
pub enum Meta {
    U32(u32),
    F32(f32),
    Text(String),
    Texts(Vec<String>),
    Ints(Vec<i32>),
    /// Type id and bytes as they are.
    Raw(u32, Vec<u8>),
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

impl Meta {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Meta::U32(value) => {
                out.extend(4u32.to_le_bytes());
                out.extend(value.to_le_bytes());
            }
            Meta::F32(value) => {
                out.extend(6u32.to_le_bytes());
                out.extend(value.to_le_bytes());
            }
            Meta::Text(text) => {
                out.extend(8u32.to_le_bytes());
                put_text(out, text);
            }
            Meta::Texts(texts) => {
                out.extend([9u32.to_le_bytes(), 8u32.to_le_bytes()].concat());
                out.extend((texts.len() as u64).to_le_bytes());
                texts.iter().for_each(|text| put_text(out, text));
            }
            Meta::Ints(ints) => {
                out.extend([9u32.to_le_bytes(), 5u32.to_le_bytes()].concat());
                out.extend((ints.len() as u64).to_le_bytes());
                ints.iter().for_each(|int| out.extend(int.to_le_bytes()));
            }
            Meta::Raw(kind, bytes) => {
                out.extend(kind.to_le_bytes());
                out.extend(bytes);
            }
        }
    }
}

impl GgufFile {
    /// A `llama` model of one layer in F32: width 32, two heads of 16, one key/value head, ffn 64,
    /// vocabulary 8. Values count up, so that none are ternary.
    pub fn tiny_llama() -> Self {
        let key = |name: &str, value| (format!("llama.{name}"), Meta::U32(value));
        let mut file = Self {
            version: 3,
            metadata: vec![
                ("general.architecture".into(), Meta::Text("llama".into())),
                key("embedding_length", 32),
                key("feed_forward_length", 64),
                key("block_count", 1),
                key("context_length", 128),
                key("attention.head_count", 2),
                key("attention.head_count_kv", 1),
                ("llama.attention.layer_norm_rms_epsilon".into(), Meta::F32(1e-5)),
                ("tokenizer.ggml.model".into(), Meta::Text("gpt2".into())),
                (
                    "tokenizer.ggml.tokens".into(),
                    Meta::Texts(["a", "b", "c", "d", "e", "f", "<s>", "<|im_end|>"].map(Into::into).into()),
                ),
                ("tokenizer.ggml.token_type".into(), Meta::Ints(vec![1, 1, 1, 1, 1, 1, 3, 3])),
                ("tokenizer.ggml.bos_token_id".into(), Meta::U32(6)),
            ],
            tensors: Vec::new(),
            alignment: 32,
            counts: None,
        };
        let shapes: [(&str, &[u64]); 11] = [
            ("token_embd", &[32, 8]),
            ("output_norm", &[32]),
            ("blk.0.attn_norm", &[32]),
            ("blk.0.attn_q", &[32, 32]),
            ("blk.0.attn_k", &[32, 16]),
            ("blk.0.attn_v", &[32, 16]),
            ("blk.0.attn_output", &[32, 32]),
            ("blk.0.ffn_norm", &[32]),
            ("blk.0.ffn_gate", &[32, 64]),
            ("blk.0.ffn_up", &[32, 64]),
            ("blk.0.ffn_down", &[64, 32]),
        ];
        for (name, dims) in shapes {
            file.add_f32(&format!("{name}.weight"), dims, |at| at as f32);
        }
        file
    }

    pub fn add_f32(&mut self, name: &str, dims: &[u64], value: impl Fn(usize) -> f32) {
        let count = dims.iter().product::<u64>() as usize;
        let data = (0..count).flat_map(|at| value(at).to_le_bytes()).collect();
        self.add(name, dims, 0, data);
    }

    pub fn add(&mut self, name: &str, dims: &[u64], type_id: u32, data: Vec<u8>) {
        let tensor = GgufTensor { name: name.into(), dims: dims.into(), type_id, data, offset: None };
        self.tensors.push(tensor);
    }

    pub fn tensor(&mut self, name: &str) -> &mut GgufTensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap()
    }

    pub fn set(&mut self, key: &str, value: Meta) {
        self.metadata.retain(|(name, _)| name != key);
        self.metadata.push((key.into(), value));
    }

    pub fn remove(&mut self, key: &str) {
        self.metadata.retain(|(name, _)| name != key);
    }

    /// The bytes, and where the data starts.
    pub fn write(&self) -> (Vec<u8>, usize) {
        let counts = (self.tensors.len() as u64, self.metadata.len() as u64);
        let (tensors, metadata) = self.counts.unwrap_or(counts);
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend([tensors.to_le_bytes(), metadata.to_le_bytes()].concat());
        for (key, value) in &self.metadata {
            put_text(&mut out, key);
            value.write(&mut out);
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            put_text(&mut out, &tensor.name);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor.dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
            out.extend(tensor.type_id.to_le_bytes());
            out.extend(tensor.offset.unwrap_or(offset).to_le_bytes());
            offset += tensor.data.len().next_multiple_of(self.alignment) as u64;
        }
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        let start = out.len();
        for tensor in &self.tensors {
            out.extend(&tensor.data);
            out.resize(start + (out.len() - start).next_multiple_of(self.alignment), 0);
        }
        (out, start)
    }

    pub fn files(&self) -> Vec<File> {
        vec![("model.gguf".into(), self.write().0)]
    }
}

/// A safetensors file of `(name, dtype, shape, data)`.
pub fn safetensors(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let from = data.len();
        data.extend(bytes);
        let to = data.len();
        entries.push(format!(
            "{name:?}:{{\"dtype\":{dtype:?},\"shape\":{shape:?},\"data_offsets\":[{from},{to}]}}"
        ));
    }
    safetensors_raw(&format!("{{{}}}", entries.join(",")), &data)
}

/// A safetensors file of a header and data as they are.
pub fn safetensors_raw(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}
