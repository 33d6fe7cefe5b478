//! The KV cache of the CPU backend: blocks of positions, allocated as the context grows, so that a long
//! context costs memory only once it is used.

use super::float::{f16_to_f32, f32_to_f16};
use crate::Result;
use crate::backend::{CacheShape, KvCache, KvFormat};
use crate::quant::try_zeroed;

/// Positions in one block.
pub const BLOCK_TOKENS: usize = 64;

/// Keys and values of all layers.
#[derive(Debug, Clone)]
pub struct CpuCache {
    shape: CacheShape,
    len: usize,
    layers: Vec<LayerCache>,
}

/// Keys and values of one layer, block after block.
#[derive(Debug, Clone, Default)]
pub struct LayerCache {
    pub keys: Vec<Block>,
    pub values: Vec<Block>,
}

/// `[kv_heads, BLOCK_TOKENS, head_dim]`
#[derive(Debug, Clone)]
pub enum Block {
    F32(Vec<f32>),
    F16(Vec<u16>),
}

impl CpuCache {
    pub fn new(shape: CacheShape) -> Self {
        Self { shape, len: 0, layers: vec![LayerCache::default(); shape.layers] }
    }

    /// The layer's blocks, grown to hold `tokens` positions.
    ///
    /// # Errors
    /// `out_of_memory`
    pub fn layer_mut(&mut self, layer: usize, tokens: usize) -> Result<&mut LayerCache> {
        let shape = self.shape;
        let layer = &mut self.layers[layer];
        while layer.values.len() * BLOCK_TOKENS < tokens {
            layer.keys.truncate(layer.values.len());
            layer.keys.push(Block::zeroed(shape)?);
            layer.values.push(Block::zeroed(shape)?);
        }
        Ok(layer)
    }

    pub fn commit(&mut self, tokens: usize) {
        self.len += tokens;
    }
}

impl KvCache for CpuCache {
    fn len(&self) -> usize {
        self.len
    }

    fn resident_bytes(&self) -> usize {
        let blocks = self.layers.first().map_or(0, |layer| layer.keys.len());
        self.shape.bytes(blocks * BLOCK_TOKENS)
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Block {
    fn zeroed(shape: CacheShape) -> Result<Self> {
        let len = shape.kv_heads * BLOCK_TOKENS * shape.head_dim;
        Ok(match shape.format {
            KvFormat::F32 => Block::F32(try_zeroed(len, "the KV cache")?),
            KvFormat::F16 => Block::F16(try_zeroed(len, "the KV cache")?),
        })
    }

    /// Stores one head's vector at `slot` of the block.
    pub fn store(&mut self, head: usize, slot: usize, vector: &[f32]) {
        let start = (head * BLOCK_TOKENS + slot) * vector.len();
        match self {
            Block::F32(data) => data[start..start + vector.len()].copy_from_slice(vector),
            Block::F16(data) => {
                for (half, value) in data[start..start + vector.len()].iter_mut().zip(vector) {
                    *half = f32_to_f16(*value);
                }
            }
        }
    }

    /// The first `tokens` vectors of a head, `[tokens, head_dim]`; `scratch` is used where they must be
    /// decoded.
    pub fn head<'a>(
        &'a self,
        head: usize,
        tokens: usize,
        head_dim: usize,
        scratch: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let start = head * BLOCK_TOKENS * head_dim;
        let range = start..start + tokens * head_dim;
        match self {
            Block::F32(data) => &data[range],
            Block::F16(data) => {
                scratch.clear();
                scratch.extend(data[range].iter().map(|half| f16_to_f32(*half)));
                scratch
            }
        }
    }
}
