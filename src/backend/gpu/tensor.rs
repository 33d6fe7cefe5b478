//! Activations on the GPU.

use super::arena::Lease;
use super::context::Context;
use super::prepare;
use crate::model::LinearInput;
use std::cell::OnceCell;
use std::rc::Rc;

/// `[tokens, width]` singles, in a buffer that others may share.
#[derive(Clone)]
pub struct GpuTensor {
    pub lease: Rc<Lease>,
    /// First element.
    pub offset: usize,
    pub tokens: usize,
    pub width: usize,
    /// Attention that is still in parts.
    pub partials: Option<Partials>,
}

/// What attention over several stretches of the context left (`shaders/source.partials.wgsl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partials {
    pub splits: usize,
    /// First element of the statistics.
    pub stats: usize,
    pub head_dim: usize,
}

impl GpuTensor {
    pub fn new(context: &Context, tokens: usize, width: usize) -> Self {
        let lease = Rc::new(context.lease(tokens * width));
        Self { lease, offset: 0, tokens, width, partials: None }
    }

    /// One tensor for each of `widths`, in one buffer.
    pub fn side_by_side<const N: usize>(context: &Context, tokens: usize, widths: [usize; N]) -> [Self; N] {
        let lease = Rc::new(context.lease(tokens * widths.iter().sum::<usize>()));
        let mut offset = 0;
        widths.map(|width| {
            let tensor = Self { lease: lease.clone(), offset, tokens, width, partials: None };
            offset += tokens * width;
            tensor
        })
    }

    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.lease.buffer
    }
}

/// The input of linears, prepared in the form that each asks for when it asks.
pub struct GpuInput {
    pub source: GpuTensor,
    pub norm: Option<InputNorm>,
    pub kind: LinearInput,
    codes: OnceCell<Lease>,
    values: OnceCell<Lease>,
}

/// An RMSNorm that is yet to be applied.
pub struct InputNorm {
    pub weight: wgpu::Buffer,
    pub eps: f32,
}

impl GpuInput {
    pub fn new(source: GpuTensor, norm: Option<InputNorm>, kind: LinearInput) -> Self {
        Self { source, norm, kind, codes: OnceCell::new(), values: OnceCell::new() }
    }

    /// Digits of a ternary linear's input.
    pub fn planes(&self) -> u32 {
        match self.kind {
            LinearInput::Int8 => 1,
            LinearInput::Float => 3,
        }
    }

    /// Whether [`Self::codes`] were made.
    pub fn has_codes(&self) -> bool {
        self.codes.get().is_some()
    }

    /// For ternary linears (`shaders/quantize.wgsl`).
    pub fn codes(&self, context: &Context) -> &wgpu::Buffer {
        &self.codes.get_or_init(|| prepare::quantize(context, self)).buffer
    }

    /// For dense linears (`shaders/normalise.wgsl`), padded with zeros.
    pub fn values(&self, context: &Context) -> &wgpu::Buffer {
        &self.values.get_or_init(|| prepare::normalise(context, self)).buffer
    }
}
