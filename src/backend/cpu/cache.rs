//! The KV cache of the CPU backend: blocks of positions, allocated as the context grows, so that a long
//! context costs memory only once it is used.

use super::code_tiles::{CodeTiles, Lanes};
use crate::Result;
use crate::backend::{CacheShape, KvCache, KvFormat};
use crate::quant::{halves, try_zeroed};

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

/// `[kv_heads, BLOCK_TOKENS, head_dim]`; integers are in tiles.
#[derive(Debug, Clone)]
pub enum Block {
    F32(Vec<f32>),
    F16(Vec<u16>),
    Q16(CodeTiles<i16>),
    Q8(CodeTiles<i8>),
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
            layer.keys.push(Block::zeroed(shape, Lanes::Positions)?);
            layer.values.push(Block::zeroed(shape, Lanes::Columns)?);
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
    fn zeroed(shape: CacheShape, lanes: Lanes) -> Result<Self> {
        let CacheShape { kv_heads, head_dim, format, .. } = shape;
        let len = kv_heads * BLOCK_TOKENS * head_dim;
        Ok(match format {
            KvFormat::F32 => Block::F32(try_zeroed(len, WHAT)?),
            KvFormat::F16 => Block::F16(try_zeroed(len, WHAT)?),
            KvFormat::Q16 => Block::Q16(CodeTiles::zeroed(kv_heads, head_dim, lanes)?),
            KvFormat::Q8 => Block::Q8(CodeTiles::zeroed(kv_heads, head_dim, lanes)?),
        })
    }

    /// Stores one head's vector at `slot` of the block.
    pub fn store(&mut self, head: usize, slot: usize, vector: &[f32]) {
        let index = head * BLOCK_TOKENS + slot;
        let range = index * vector.len()..(index + 1) * vector.len();
        match self {
            Block::F32(data) => data[range].copy_from_slice(vector),
            Block::F16(data) => halves::encode_finite(vector, &mut data[range]),
            Block::Q16(data) => data.store(index, vector),
            Block::Q8(data) => data.store(index, vector),
        }
    }
}

pub const WHAT: &str = "the KV cache";
