//! Attention over the KV cache (`shaders/attend.wgsl`).

use super::Gpu;
use super::cache::GpuCache;
use super::context::Context;
use super::kernels::Constant;
use super::recorder::Dispatch;
use super::tensor::{GpuTensor, Partials};
use crate::Result;
use crate::backend::{AttentionInput, KvCache, KvFormat};

/// Positions that a workgroup attends to in decoding: a longer context is shared by several.
const STRETCH: usize = 256;
/// Bytes of workgroup memory that a kernel may use, of the 16 KiB that WebGPU promises.
const WORKGROUP_BYTES: usize = 15 << 10;
/// Rows of a workgroup at most.
const MOST_ROWS: usize = 16;

/// See [`crate::backend::Backend::attend`]; `rope` holds the step's positions.
pub fn attend(
    context: &Context,
    input: AttentionInput<'_, Gpu>,
    rope: &wgpu::Buffer,
    cache: &mut GpuCache,
) -> Result<GpuTensor> {
    assert_eq!(input.query.buffer(), input.key.buffer(), "the products of one input share a buffer");
    assert_eq!(input.query.buffer(), input.value.buffer(), "the products of one input share a buffer");
    let start = cache.len();
    let tokens = input.query.tokens;
    cache.reserve(context, start + tokens)?;
    Pass { context, start, tokens, input: &input, rope, cache }.run()
}

struct Pass<'a> {
    context: &'a Context,
    start: usize,
    tokens: usize,
    input: &'a AttentionInput<'a, Gpu>,
    rope: &'a wgpu::Buffer,
    cache: &'a GpuCache,
}

impl Pass<'_> {
    fn run(&self) -> Result<GpuTensor> {
        let head_dim = self.cache.shape().head_dim;
        let rows = self.tokens * self.group();
        let tile = row_tile(rows, head_dim);
        let is_alone = self.tokens == 1 && rows <= tile;
        if !is_alone {
            self.append();
        }
        // Prompts have enough rows to keep a device busy; a single token's context is divided instead.
        let end = self.start + self.tokens;
        let splits = if self.tokens == 1 { end.div_ceil(STRETCH) } else { 1 };
        let width = self.input.query.width;
        let sums = self.tokens * width * splits;
        let stats = if splits > 1 { 2 * self.tokens * self.heads() * splits } else { 0 };
        let mut out = GpuTensor::new(self.context, 1, sums + stats);
        (out.tokens, out.width) = (self.tokens, width);
        out.partials = (splits > 1).then_some(Partials { splits, stats: sums, head_dim });

        let norm_part = if self.input.query_norm.is_some() { "query_norm" } else { "query_norm.none" };
        let mut parts = vec!["exponential", self.kv_part(), "heads", norm_part];
        match is_alone {
            true => parts.extend([self.key_norm_part(), "append.body", "attend.append"]),
            false => parts.push("attend.cache"),
        }
        parts.push("attend");
        let mut constants = self.constants();
        constants.extend([("ROWS", Constant::Count(tile as u32)), ("SPLIT", Constant::Flag(splits > 1))]);
        let layer = self.cache.layer(self.input.layer);
        let mut buffers = self.buffers();
        buffers.extend([(4, &layer.keys), (5, &layer.values), (6, out.buffer())]);
        buffers.extend(self.input.query_norm.map(|norm| (7, norm)));
        if is_alone {
            buffers.extend(self.input.key_norm.map(|norm| (8, norm)));
        }
        let stretch = if splits > 1 { STRETCH as u32 } else { u32::MAX };
        self.context.dispatch(Dispatch {
            kernel: self.context.kernel(&parts, &constants),
            params: &[(0, &self.params(stretch, splits, sums))],
            buffers: &buffers,
            workgroups: [self.kv_heads() as u32, rows.div_ceil(tile) as u32, splits as u32],
        });
        Ok(out)
    }

    fn append(&self) {
        let layer = self.cache.layer(self.input.layer);
        let mut buffers = self.buffers();
        buffers.extend([(4, &layer.keys), (5, &layer.values)]);
        buffers.extend(self.input.key_norm.map(|norm| (8, norm)));
        let parts = [self.kv_part(), "heads", self.key_norm_part(), "append.body", "append"];
        self.context.dispatch(Dispatch {
            kernel: self.context.kernel(&parts, &self.constants()),
            params: &[(0, &self.params(u32::MAX, 1, 0))],
            buffers: &buffers,
            workgroups: [self.kv_heads() as u32, self.tokens as u32, 1],
        });
    }

    fn params(&self, stretch: u32, splits: usize, stats: usize) -> [u32; 8] {
        [
            self.input.query.offset as u32,
            self.input.key.offset as u32,
            self.input.value.offset as u32,
            self.tokens as u32,
            self.input.norm_eps.to_bits(),
            stretch,
            splits as u32,
            stats as u32,
        ]
    }

    fn buffers(&self) -> Vec<(u32, &wgpu::Buffer)> {
        vec![(1, self.input.query.buffer()), (2, self.rope), (3, &self.context.input)]
    }

    fn constants(&self) -> Vec<(&'static str, Constant)> {
        vec![
            ("HEAD_DIM", Constant::Count(self.cache.shape().head_dim as u32)),
            ("HEADS", Constant::Count(self.heads() as u32)),
            ("KV_HEADS", Constant::Count(self.kv_heads() as u32)),
            ("QUERY_NORM", Constant::Flag(self.input.query_norm.is_some())),
            ("KEY_NORM", Constant::Flag(self.input.key_norm.is_some())),
        ]
    }

    fn kv_part(&self) -> &'static str {
        match self.cache.shape().format {
            KvFormat::F32 => "kv.f32",
            KvFormat::F16 | KvFormat::Q16 => "kv.f16",
            KvFormat::Q8 => "kv.q8",
        }
    }

    fn key_norm_part(&self) -> &'static str {
        if self.input.key_norm.is_some() { "key_norm" } else { "key_norm.none" }
    }

    fn heads(&self) -> usize {
        self.input.query.width / self.cache.shape().head_dim
    }

    fn kv_heads(&self) -> usize {
        self.cache.shape().kv_heads
    }

    /// Query heads that share a key/value head.
    fn group(&self) -> usize {
        self.heads() / self.kv_heads()
    }
}

/// Rows of a workgroup: a multiple of four, no more than there are or than workgroup memory holds.
fn row_tile(rows: usize, head_dim: usize) -> usize {
    // A query and its sum, and a tile of scores.
    let row_bytes = 2 * head_dim.next_multiple_of(4) * size_of::<f32>() + 64 * size_of::<f32>() + 16;
    let most = (WORKGROUP_BYTES / row_bytes / 4 * 4).clamp(4, MOST_ROWS);
    rows.next_multiple_of(4).min(most)
}
