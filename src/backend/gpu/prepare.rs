//! Inputs of linears: RMSNorm and quantisation (`shaders/prepare.wgsl`).

use super::arena::Lease;
use super::context::Context;
use super::kernels::Constant;
use super::recorder::Dispatch;
use super::tensor::{GpuInput, GpuTensor};
use crate::model::LinearInput;
use crate::quant::ternary::COL_ALIGN;
use std::rc::Rc;

/// Elements to which the rows of float inputs are padded: a `vec4` of bytes.
pub const VALUE_ALIGN: usize = 16;

/// Integer activations of every token.
pub fn quantize(context: &Context, input: &GpuInput) -> Lease {
    let padded = input.source.width.next_multiple_of(COL_ALIGN);
    let planes = input.planes() as usize;
    let words = input.source.tokens * (4 + planes * padded / 4);
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
    let source = &input.source;
    let weight_part = if input.norm.is_some() { "prepare.weight" } else { "prepare.no_weight" };
    let source_part = if source.partials.is_some() { "source.partials" } else { "source.plain" };
    let partials = source.partials.as_ref();
    let kernel = context.kernel(
        &["prepare", source_part, weight_part, part],
        &[
            ("NORM", Constant::Flag(input.norm.is_some())),
            ("PLANES", Constant::Count(input.planes())),
            ("HEAD_DIM", Constant::Count(partials.map_or(1, |partials| partials.head_dim as u32))),
        ],
    );
    let params = [
        source.width as u32,
        source.offset as u32,
        partials.map_or(0, |partials| partials.stats as u32),
        partials.map_or(1, |partials| partials.splits as u32),
        padded as u32,
        source.tokens as u32,
        input.norm.as_ref().map_or(0.0, |norm| norm.eps).to_bits(),
        0,
    ];
    let mut buffers = vec![(1, source.buffer()), (3, &out.buffer)];
    if let Some(norm) = &input.norm {
        buffers.push((2, &norm.weight));
    }
    context.dispatch(Dispatch {
        kernel,
        params: &params,
        buffers: &buffers,
        workgroups: [source.tokens as u32, 1, 1],
    });
    out
}
