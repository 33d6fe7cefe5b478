//! From parsed headers to a model whose tensors can be read: specs, plans, and what reports need.

use serde_json::Value;

use super::assembly::Assembly;
use super::entry::{self, Layout};
use super::gguf::GgufHeader;
use super::inspect::{self, Format, TensorSummary};
use super::metadata::Metadata;
use super::names::Naming;
use super::parts;
use super::plan::{Plan, Planner};
use super::reader::ReadOptions;
use super::safetensors::SafetensorsHeader;
use super::spec::ModelSpec;
use super::split::SplitPart;
use super::walk::Walk;
use super::{gguf_config, hf_config};
use crate::Result;
use crate::error::{corrupt, invalid, unsupported};
use crate::model::{ModelConfig, RopeScaling};

/// What the headers of weights files said, and what has been read since.
pub(super) struct Weights {
    pub format: Format,
    /// As the file names it.
    pub architecture: String,
    /// An error where the model is not one that Sterna runs.
    pub spec: Result<ModelSpec>,
    /// Of a GGUF file.
    pub metadata: Option<Metadata>,
    pub shown_metadata: Vec<(String, String)>,
    /// All tensors, each with its number of weights.
    pub tensors: Vec<(TensorSummary, u64)>,
    pub file_bytes: u64,
    /// Bytes that the tensors will keep.
    pub resident_bytes: u64,
    /// Tensors listed, and tensors read or not needed.
    pub listed: usize,
    pub done: usize,
    pub assembly: Assembly,
    /// Of a split GGUF model: how many parts there are, and how many came.
    parts: Option<Parts>,
    options: ReadOptions,
}

#[derive(Clone, Copy)]
struct Parts {
    count: u64,
    come: u64,
}

impl Weights {
    fn new(format: Format, architecture: String, spec: Result<ModelSpec>, options: &ReadOptions) -> Self {
        Self {
            format,
            architecture,
            spec,
            metadata: None,
            shown_metadata: Vec::new(),
            tensors: Vec::new(),
            file_bytes: 0,
            resident_bytes: 0,
            listed: 0,
            done: 0,
            assembly: Assembly::default(),
            parts: None,
            options: options.clone(),
        }
    }

    /// The weights of a GGUF file of `size` bytes, and the walk through its data, or the reason why the
    /// model cannot be run.
    ///
    /// # Errors
    /// `corrupt_file` when the header contradicts itself.
    pub fn from_gguf(
        header: GgufHeader,
        size: Option<u64>,
        options: &ReadOptions,
    ) -> Result<(Self, Result<Walk>)> {
        let layout = entry::gguf_layout(&header, size)?;
        let spec = gguf_config::model_spec(&header.metadata, &layout.entries);
        let part = SplitPart::of(&header.metadata)?;
        let architecture = header.metadata.text("general.architecture").unwrap_or("unknown").to_owned();
        let mut weights = Self {
            file_bytes: size.unwrap_or(layout.padded_end),
            shown_metadata: header.metadata.shown(),
            metadata: Some(header.metadata),
            parts: part.map(|part| Parts { count: part.count, come: 1 }),
            ..Self::new(Format::Gguf, architecture, spec, options)
        };
        let walk = weights.plan(layout, header.end, part.is_none());
        Ok((weights, walk))
    }

    /// Whether further GGUF files belong to the model.
    pub fn lacks_parts(&self) -> bool {
        self.parts.is_some_and(|parts| parts.come < parts.count)
    }

    /// Adds a further part of a split GGUF model. Returns the walk through its data.
    ///
    /// # Errors
    /// `invalid_argument` for a part out of order or of another model, and the reason why the model cannot be
    /// run.
    pub fn add_gguf(&mut self, header: GgufHeader, size: Option<u64>) -> Result<Walk> {
        let layout = entry::gguf_layout(&header, size)?;
        let Some(parts) = &mut self.parts else {
            return Err(invalid!("a second GGUF file was given for a model in one file"));
        };
        match SplitPart::of(&header.metadata)? {
            Some(part) if part.count == parts.count && part.number == parts.come => parts.come += 1,
            Some(part) if part.count == parts.count => return Err(part.out_of_order(parts.come)),
            _ => {
                return Err(invalid!(
                    "the GGUF files are not parts of one split model: give only those of one"
                ));
            }
        }
        if let Ok(spec) = &mut self.spec {
            gguf_config::add_part(&mut spec.config, &layout.entries);
        }
        self.file_bytes += size.unwrap_or(layout.padded_end);
        self.plan(layout, header.end, false)
    }

    /// The model that a `config.json` describes, before any weights; `Null` stands for no config.
    pub fn of_config(config: &Value, options: &ReadOptions) -> Self {
        let architecture = hf_config::architecture(config).unwrap_or("unknown".into());
        let spec = match config.is_object() {
            true => hf_config::model_spec(config),
            false => Err(corrupt!(
                "safetensors weights need the model's config.json, given before them: it says what model \
                 they are"
            )),
        };
        Self::new(Format::Safetensors, architecture, spec, options)
    }

    /// Adds a file, which is `whole` when no other belongs to the model. Returns the walk through its data.
    ///
    /// # Errors
    /// The reason why the model cannot be run.
    pub fn add_safetensors(&mut self, header: SafetensorsHeader, whole: bool) -> Result<Walk> {
        let end = header.data_end();
        self.file_bytes += end;
        for entry in header.metadata {
            if !self.shown_metadata.contains(&entry) {
                self.shown_metadata.push(entry);
            }
        }
        let layout = Layout { entries: header.entries, end, padded_end: end };
        self.plan(layout, header.end, whole)
    }

    /// The configuration after all tensors came.
    ///
    /// # Errors
    /// `corrupt_file` when some did not.
    pub fn final_config(&mut self) -> Result<ModelConfig> {
        if let Some(Parts { count, come }) = self.parts.filter(|_| self.lacks_parts()) {
            return Err(invalid!(
                "the model is split into {count} GGUF files, of which {come} came: give all of them"
            ));
        }
        self.assembly.check_slots()?;
        let spec = self.spec.as_ref().map_err(Clone::clone)?;
        self.planner(spec).check_complete(self.assembly.done())?;
        let mut config = spec.config.clone();
        if let Some(factors) = self.assembly.rope_factors.take() {
            config.rope.scaling = join_scaling(config.rope.scaling, factors)?;
        }
        Ok(config)
    }

    fn planner<'a>(&'a self, spec: &'a ModelSpec) -> Planner<'a> {
        let naming = match self.format {
            Format::Gguf => Naming::Gguf,
            Format::Safetensors => Naming::HuggingFace,
        };
        Planner { spec, naming, options: &self.options }
    }

    /// Plans the tensors of a file whose header ends at `header_end`.
    fn plan(&mut self, layout: Layout, header_end: u64, whole: bool) -> Result<Walk> {
        let plan = self.plan_entries(&layout, whole);
        let jobs = plan.as_ref().map(|plan| plan.jobs.as_slice()).unwrap_or_default();
        self.tensors.extend(inspect::summarize(&layout.entries, jobs));
        self.resident_bytes += jobs.iter().map(|job| job.form.resident_bytes()).sum::<u64>();
        let plan = plan?;
        self.listed += layout.entries.len();
        self.done += plan.ignored;
        for job in &plan.jobs {
            self.assembly.expect(job)?;
        }
        let jobs = parts::cut(plan.jobs, self.options.part_bytes);
        Ok(Walk::new(jobs, header_end, layout.end, layout.padded_end))
    }

    fn plan_entries(&self, layout: &Layout, whole: bool) -> Result<Plan> {
        let spec = self.spec.as_ref().map_err(Clone::clone)?;
        let planner = self.planner(spec);
        let plan = planner.plan(&layout.entries)?;
        if whole {
            planner.check_complete(&plan.weights())?;
        }
        Ok(plan)
    }
}

fn join_scaling(scaling: RopeScaling, factors: Vec<f32>) -> Result<RopeScaling> {
    if scaling != RopeScaling::None {
        return Err(unsupported!(
            "the GGUF file has both rope_freqs.weight and rope scaling metadata, which Sterna does not combine"
        ));
    }
    match factors.iter().all(|factor| *factor > 0.0) {
        true => Ok(RopeScaling::Factors { factors }),
        false => Err(corrupt!("rope_freqs.weight holds a factor that is not positive")),
    }
}
