//! WGSL → pipelines. A kernel is put together from the files of `shaders/` that it names and from constants;
//! each combination is compiled once, when it is first used.

use super::device::Device;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

/// A constant of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Constant {
    Count(u32),
    Flag(bool),
}

/// What a kernel is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// Files of `shaders/`, without their ending.
    pub parts: Vec<&'static str>,
    pub constants: Vec<(&'static str, Constant)>,
}

/// A compiled kernel.
pub struct Kernel {
    pub id: usize,
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// Gives a file of `shaders/` by its name without the ending.
pub type Texts = fn(&'static str) -> &'static str;

/// All kernels compiled so far.
pub struct Kernels {
    texts: Texts,
    known: RefCell<HashMap<Recipe, Rc<Kernel>>>,
}

impl Kernels {
    pub fn new(texts: Texts) -> Self {
        Self { texts, known: RefCell::default() }
    }

    pub fn get(&self, device: &Device, recipe: Recipe) -> Rc<Kernel> {
        let mut known = self.known.borrow_mut();
        let id = known.len();
        let compiled = |recipe: &Recipe| {
            let source = source(device, recipe, self.texts);
            Rc::new(compile(device, recipe.parts.last().copied(), source, id))
        };
        known.entry(recipe).or_insert_with_key(compiled).clone()
    }
}

fn compile(device: &Device, label: Option<&str>, source: String, id: usize) -> Kernel {
    let module = device.device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label,
        source: wgpu::ShaderSource::Wgsl(source.into()),
    });
    let pipeline = device.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let layout = pipeline.get_bind_group_layout(0);
    Kernel { id, pipeline, layout }
}

fn source(device: &Device, recipe: &Recipe, texts: Texts) -> String {
    let mut source = String::new();
    if device.has_subgroups && cfg!(target_arch = "wasm32") {
        // Browsers want to be told; naga knows neither line. Teams divide rows evenly, so that whole
        // subgroups take part, which the analysis cannot see.
        source += "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n";
    }
    for (name, constant) in &recipe.constants {
        let line = match constant {
            Constant::Count(value) => writeln!(source, "const {name} = {value}u;"),
            Constant::Flag(value) => writeln!(source, "const {name} = {value};"),
        };
        line.expect("writing to a string does not fail");
    }
    for part in &recipe.parts {
        source += texts(part);
    }
    source
}

macro_rules! shaders {
    ($($name:literal),* $(,)?) => {
        /// The files as they are.
        pub fn text(part: &'static str) -> &'static str {
            match part {
                $($name => include_str!(concat!("../../../shaders/", $name, ".wgsl")),)*
                _ => unreachable!("{part} is not a file of shaders/"),
            }
        }
    };
}

shaders![
    "append",
    "append.body",
    "argmax",
    "argmax.part",
    "attend",
    "attend.append",
    "attend.cache",
    "choose.finish",
    "choose.penalty",
    "combine",
    "dense_linear",
    "draw",
    "embed.dense",
    "embed.ternary",
    "exponential",
    "heads",
    "input.buffer",
    "input.inline",
    "input.none",
    "input.tokens",
    "integer_dot",
    "key_norm",
    "key_norm.none",
    "kv.f16",
    "kv.f32",
    "kv.q8",
    "normalise",
    "pairs.own",
    "pairs.shared",
    "planes",
    "prepare",
    "prepare.no_weight",
    "prepare.weight",
    "quantize",
    "quantize.store",
    "query_norm",
    "query_norm.none",
    "rows",
    "rows.bf16",
    "rows.f16",
    "rows.f32",
    "rows.int4",
    "rows.int8",
    "singles",
    "source.partials",
    "source.plain",
    "team",
    "team.lane",
    "team.subgroup",
    "team.workgroup",
    "ternary_linear",
    "ternary_row",
    "ternary_row.grouped",
    "ternary_row.singles",
    "ternary_row.whole",
    "ternary_tile.packed",
    "ternary_tile.pairs",
    "values.one",
    "values.tokens",
];
