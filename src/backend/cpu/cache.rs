//! The KV cache of the CPU backend: blocks of positions, allocated as the context grows, so that a long
//! context costs memory only once it is used.

use crate::Result;
use crate::backend::{CacheShape, KvCache, KvFormat};
use crate::float::largest;
use crate::quant::rounding::round_small;
use crate::quant::{halves, try_zeroed};
use bytemuck::Zeroable;

/// Positions in one block.
pub const BLOCK_TOKENS: usize = 64;
/// Integers that kernels take at a time.
pub const CODE_ALIGN: usize = 8;

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
    Q16(Rounded<i16>),
    Q8(Rounded<i8>),
}

/// Vectors of integers.
#[derive(Debug, Clone)]
pub struct Rounded<C> {
    /// Each vector is padded with zeros to a multiple of [`CODE_ALIGN`].
    codes: Vec<C>,
    /// What one unit is worth in each vector.
    scales: Vec<f32>,
}

/// An integer that keys and values are rounded to.
pub trait Code: Copy + Zeroable {
    /// Its largest magnitude.
    const MAX: i16;

    /// The lowest bits.
    fn from_i32(value: i32) -> Self;
}

impl Code for i16 {
    // Less than there is room for: products with queries of as many bits are summed in 32 bits.
    const MAX: i16 = 8191;

    fn from_i32(value: i32) -> Self {
        value as i16
    }
}

impl Code for i8 {
    const MAX: i16 = 127;

    fn from_i32(value: i32) -> Self {
        value as i8
    }
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
        let vectors = shape.kv_heads * BLOCK_TOKENS;
        let len = vectors * shape.head_dim;
        Ok(match shape.format {
            KvFormat::F32 => Block::F32(try_zeroed(len, WHAT)?),
            KvFormat::F16 => Block::F16(try_zeroed(len, WHAT)?),
            KvFormat::Q16 => Block::Q16(Rounded::zeroed(vectors, shape.head_dim)?),
            KvFormat::Q8 => Block::Q8(Rounded::zeroed(vectors, shape.head_dim)?),
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

impl<C: Code> Rounded<C> {
    fn zeroed(vectors: usize, width: usize) -> Result<Self> {
        let codes = try_zeroed(vectors * width.next_multiple_of(CODE_ALIGN), WHAT)?;
        Ok(Self { codes, scales: try_zeroed(vectors, WHAT)? })
    }

    fn store(&mut self, index: usize, vector: &[f32]) {
        let start = index * vector.len().next_multiple_of(CODE_ALIGN);
        self.scales[index] = round(vector, C::MAX, &mut self.codes[start..][..vector.len()]);
    }

    /// The first `count` vectors of a head.
    pub fn of_head(&self, head: usize, count: usize) -> (&[C], &[f32]) {
        let width = self.codes.len() / self.scales.len();
        let first = head * BLOCK_TOKENS;
        (&self.codes[first * width..][..count * width], &self.scales[first..][..count])
    }
}

/// Rounds to integers of a magnitude up to `max`. Returns what one unit is worth.
pub fn round<C: Code>(vector: &[f32], max: i16, codes: &mut [C]) -> f32 {
    let max = f32::from(max);
    let unit = largest(vector).max(f32::MIN_POSITIVE * max) / max;
    let inverse = 1.0 / unit;
    for (code, value) in codes.iter_mut().zip(vector) {
        *code = C::from_i32(round_small(value * inverse));
    }
    unit
}

const WHAT: &str = "the KV cache";
