//! Inputs of linears: RMSNorm and quantisation (`shaders/prepare.wgsl`).

use super::arena::Lease;
use super::context::Context;
use super::kernels::Constant;
use super::linear::Epilogue;
use super::recorder::Dispatch;
use super::tensor::{GpuInput, GpuTensor};
use super::variants::{InputPreparation, WORKGROUP};
use crate::model::LinearInput;
use crate::quant::int4;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN};
use std::rc::Rc;

/// Elements to which the rows of float inputs are padded: what dense rows are padded to at most.
pub const VALUE_ALIGN: usize = int4::BATCH * int4::GROUP;

/// Integer activations of every token.
pub fn quantize(context: &Context, input: &GpuInput) -> Lease {
    let padded = input.source.width.next_multiple_of(COL_ALIGN);
    let chunks = padded / CHUNK_COLS;
    // In whole vectors: the facts of tokens, then their planes.
    let vectors = input.source.tokens.div_ceil(chunks) + input.source.tokens * input.planes() as usize;
    let words = vectors * chunks * 4;
    prepare(context, input, "quantize", padded, words)
}

/// Float activations of every token.
pub fn normalise(context: &Context, input: &GpuInput) -> Lease {
    let padded = input.source.width.next_multiple_of(VALUE_ALIGN);
    prepare(context, input, "normalise", padded, input.source.tokens * padded)
}

/// Attention whose parts are joined.
pub fn joined(context: &Context, partials: &GpuTensor) -> GpuTensor {
    let (tokens, width) = (partials.tokens, partials.width);
    let input = GpuInput::new(partials.clone(), None, LinearInput::Float);
    let lease = Rc::new(prepare(context, &input, "normalise", width, tokens * width));
    GpuTensor { lease, offset: 0, tokens, width, partials: None }
}

fn prepare(context: &Context, input: &GpuInput, part: &'static str, padded: usize, words: usize) -> Lease {
    let out = context.lease(words);
    let preparation = Preparation::new(input, padded);
    let mut parts = preparation.parts();
    match part {
        "quantize" => parts.extend(["quantize", "quantize.store"]),
        other => parts.push(other),
    }
    let mut constants = preparation.constants();
    constants.push(("WORKGROUP", Constant::Count(WORKGROUP)));
    let mut buffers = preparation.buffers();
    buffers.push((3, &out.buffer));
    context.dispatch(Dispatch {
        kernel: context.kernel(&parts, &constants),
        params: &[preparation.params()],
        buffers: &buffers,
        workgroups: [input.source.tokens as u32, 1, 1],
    });
    out
}

/// Bytes of workgroup memory for an input that a product makes for itself, of the 16 KiB that WebGPU promises.
const INLINE_BYTES: usize = 11 << 10;

/// What kernels that prepare inputs are given (`shaders/prepare.wgsl`).
pub struct Preparation<'a> {
    input: &'a GpuInput,
    params: [u32; 8],
}

/// The preparation of one token's integer input within the kernel of its product, where that is wanted and the
/// input fits workgroup memory. A gated product is by far the largest of a layer: with its input made once, most
/// of the work is saved for one dispatch more.
pub fn inline<'a>(context: &Context, input: &'a GpuInput, epilogue: Epilogue) -> Option<Inline<'a>> {
    let source = &input.source;
    let padded = source.width.next_multiple_of(COL_ALIGN);
    let vectors = 1 + input.planes() as usize * padded / CHUNK_COLS;
    let is_wanted = match context.variants.get().preparation {
        InputPreparation::Inline => !input.has_codes(),
        InputPreparation::Separate => !input.has_codes() && !matches!(epilogue, Epilogue::Gate(_)),
    };
    let fits = source.tokens == 1 && source.partials.is_none() && vectors * 16 <= INLINE_BYTES;
    (is_wanted && fits).then(|| Inline { preparation: Preparation::new(input, padded) })
}

/// A preparation within a product.
pub struct Inline<'a> {
    preparation: Preparation<'a>,
}

impl<'a> Inline<'a> {
    pub fn parts(&self) -> Vec<&'static str> {
        let mut parts = self.preparation.parts();
        parts.extend(["quantize", "input.inline"]);
        parts
    }

    /// Those that the product does not give itself.
    pub fn constants(&self) -> Vec<(&'static str, Constant)> {
        let mut constants = self.preparation.constants();
        constants.retain(|(name, _)| *name != "PLANES");
        constants
    }

    pub fn params(&self) -> (u32, &[u32]) {
        self.preparation.params()
    }

    pub fn buffers(&self) -> Vec<(u32, &'a wgpu::Buffer)> {
        self.preparation.buffers()
    }
}

impl<'a> Preparation<'a> {
    fn new(input: &'a GpuInput, padded: usize) -> Self {
        let source = &input.source;
        let partials = source.partials.as_ref();
        let first = match partials {
            Some(_) => source.offset,
            None => {
                assert!(source.offset.is_multiple_of(source.width), "inputs begin at a whole row");
                source.offset / source.width
            }
        };
        let params = [
            first as u32,
            partials.map_or(0, |partials| partials.stats as u32),
            partials.map_or(1, |partials| partials.splits as u32),
            padded as u32,
            source.tokens as u32,
            input.norm.as_ref().map_or(0.0, |norm| norm.eps).to_bits(),
            0,
            0,
        ];
        Self { input, params }
    }

    fn parts(&self) -> Vec<&'static str> {
        let weight = if self.input.norm.is_some() { "prepare.weight" } else { "prepare.no_weight" };
        match self.input.source.partials {
            Some(_) => vec!["prepare", "exponential", "source.partials", weight],
            None => vec!["prepare", "source.plain", weight],
        }
    }

    fn constants(&self) -> Vec<(&'static str, Constant)> {
        let head_dim = self.input.source.partials.map_or(1, |partials| partials.head_dim as u32);
        vec![
            ("NORM", Constant::Flag(self.input.norm.is_some())),
            ("PLANES", Constant::Count(self.input.planes())),
            ("HEAD_DIM", Constant::Count(head_dim)),
            ("WIDTH", Constant::Count(self.input.source.width as u32)),
        ]
    }

    fn params(&self) -> (u32, &[u32]) {
        (5, &self.params)
    }

    fn buffers(&self) -> Vec<(u32, &'a wgpu::Buffer)> {
        let mut buffers = vec![(6, self.input.source.buffer())];
        buffers.extend(self.input.norm.as_ref().map(|norm| (7, &norm.weight)));
        buffers
    }
}
