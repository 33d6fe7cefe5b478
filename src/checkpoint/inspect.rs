//! A report on a checkpoint from its headers alone.

use safetensors::Dtype;
use serde::Serialize;

use super::entry::{Stored, TensorEntry};
use super::metadata::shortened;
use super::names::Part;
use super::plan::{Coding, Form, Job};
use crate::model::ModelConfig;

/// What is in a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InspectReport {
    pub format: Format,
    /// As the file names it.
    pub architecture: String,
    pub supported: bool,
    /// Why it is not supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ModelConfig>,
    /// Weights of the files whose headers were read.
    pub parameters: u64,
    pub encodings: Vec<EncodingSummary>,
    /// Size of those files.
    pub file_bytes: u64,
    /// Long values are shortened.
    pub metadata: Vec<(String, String)>,
    pub tensors: Vec<TensorSummary>,
}

/// The container of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Gguf,
    Safetensors,
}

/// All tensors of one encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EncodingSummary {
    pub encoding: String,
    pub tensors: u64,
    pub parameters: u64,
    pub bytes: u64,
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TensorSummary {
    pub name: String,
    /// Rows first.
    pub shape: Vec<u64>,
    pub encoding: String,
    pub bytes: u64,
    /// From the start of the file.
    pub offset: u64,
}

/// Lists a file's tensors; `jobs` are those that will be read.
pub(super) fn summarize(entries: &[TensorEntry], jobs: &[Job]) -> Vec<(TensorSummary, u64)> {
    let mut jobs = jobs.iter().peekable();
    let mut summaries = Vec::with_capacity(entries.len());
    for entry in entries {
        let job = jobs.next_if(|job| job.name == entry.name);
        let (encoding, parameters) = describe(entry, job);
        summaries.push((
            TensorSummary {
                name: entry.name.clone(),
                shape: entry.shape.clone(),
                encoding,
                bytes: entry.bytes,
                offset: entry.offset,
            },
            parameters,
        ));
    }
    summaries
}

/// A tensor's encoding and the number of weights in it.
fn describe(entry: &TensorEntry, job: Option<&Job>) -> (String, u64) {
    let label = entry.stored.label().into_owned();
    match job.map(|job| (job.part, job.form)) {
        None => (label, entry.elements() * weights_an_element(entry)),
        Some((Part::Weight, Form::Matrix { rows, cols, coding, .. })) => {
            let label = match coding {
                Coding::Packed => "packed ternary (U8)".to_owned(),
                Coding::Mlx => "MLX 2-bit (U32)".to_owned(),
                Coding::Master(_) => format!("{label} master weights"),
                _ => label,
            };
            (label, rows as u64 * cols as u64)
        }
        Some((Part::Weight, Form::Vector { .. })) => (label, entry.elements()),
        Some(_) => (label, 0),
    }
}

/// How many weights an element of a tensor holds that no config says anything of, from what the quantisers of
/// Hugging Face and MLX write: four packed ternary weights a byte, sixteen a word, and scales beside them.
fn weights_an_element(entry: &TensorEntry) -> u64 {
    let suffix = entry.name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    match (entry.stored, suffix) {
        (_, "weight_scale" | "scales" | "biases") => 0,
        (Stored::Raw(Dtype::U8), "weight") => 4,
        (Stored::Raw(Dtype::U32), "weight") => 16,
        _ => 1,
    }
}

/// Groups tensors by encoding, in order of first appearance.
pub(super) fn encodings(tensors: &[(TensorSummary, u64)]) -> Vec<EncodingSummary> {
    let mut groups: Vec<EncodingSummary> = Vec::new();
    for (tensor, parameters) in tensors {
        let group = groups.iter_mut().find(|group| group.encoding == tensor.encoding);
        let group = match group {
            Some(group) => group,
            None => {
                groups.push(EncodingSummary {
                    encoding: tensor.encoding.clone(),
                    tensors: 0,
                    parameters: 0,
                    bytes: 0,
                });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        group.tensors += 1;
        group.parameters += parameters;
        group.bytes += tensor.bytes;
    }
    groups
}

/// A JSON entry as text.
pub(super) fn shown_json((key, value): (&String, &serde_json::Value)) -> (String, String) {
    let text = match value {
        serde_json::Value::String(text) => shortened(text),
        value => shortened(&value.to_string()),
    };
    (key.clone(), text)
}
