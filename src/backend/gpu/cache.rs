//! The KV cache on the GPU: a buffer of keys and one of values a layer, `[positions, kv_heads, head_dim]` in
//! the format of `shaders/kv.*.wgsl`, which double when the context outgrows them.

use super::context::Context;
use crate::backend::{CacheShape, KvCache};
use crate::{Error, Result};

/// Positions of a fresh cache.
const FIRST_POSITIONS: usize = 256;

pub struct GpuCache {
    shape: CacheShape,
    len: usize,
    capacity: usize,
    layers: Vec<Option<LayerCache>>,
}

/// Keys and values of one layer.
pub struct LayerCache {
    pub keys: wgpu::Buffer,
    pub values: wgpu::Buffer,
}

impl GpuCache {
    pub fn new(shape: CacheShape) -> Self {
        let layers = std::iter::repeat_with(|| None).take(shape.layers).collect();
        Self { shape, len: 0, capacity: 0, layers }
    }

    pub fn shape(&self) -> CacheShape {
        self.shape
    }

    /// Makes room for `positions`.
    ///
    /// # Errors
    /// `out_of_memory` when a layer's keys would not fit a binding.
    pub fn reserve(&mut self, context: &Context, positions: usize) -> Result<()> {
        if positions <= self.capacity {
            return Ok(());
        }
        let capacity = positions.next_power_of_two().max(FIRST_POSITIONS);
        let bytes = (capacity * self.position_bytes()) as u64;
        if bytes > context.device.binding_bytes {
            return Err(Error::OutOfMemory(format!(
                "a KV cache of {capacity} positions takes {:.0} MB a layer, and the GPU binds {:.0} MB at most: \
                 ask for a shorter contextLength, or for kvCache \"q8\"",
                bytes as f64 / 1e6,
                context.device.binding_bytes as f64 / 1e6
            )));
        }
        let kept = (self.len * self.position_bytes()) as u64;
        for layer in &mut self.layers {
            let grown =
                LayerCache { keys: context.storage(bytes, "keys"), values: context.storage(bytes, "values") };
            if let Some(old) = layer.as_ref().filter(|_| kept > 0) {
                context.recorder.copy(&context.device, (&old.keys, 0), (&grown.keys, 0), kept);
                context.recorder.copy(&context.device, (&old.values, 0), (&grown.values, 0), kept);
            }
            *layer = Some(grown);
        }
        self.capacity = capacity;
        // Bind groups would keep the old buffers alive.
        context.recorder.forget_groups();
        Ok(())
    }

    /// A layer's buffers, once there is [room](Self::reserve).
    pub fn layer(&self, layer: usize) -> &LayerCache {
        self.layers[layer].as_ref().expect("room was made before")
    }

    pub fn commit(&mut self, tokens: usize) {
        self.len += tokens;
    }

    /// Bytes of one position's keys (or values) in a layer.
    fn position_bytes(&self) -> usize {
        self.shape.kv_heads * self.shape.format.vector_bytes(self.shape.head_dim.next_multiple_of(4))
    }
}

impl KvCache for GpuCache {
    fn len(&self) -> usize {
        self.len
    }

    fn resident_bytes(&self) -> usize {
        2 * self.layers.len() * self.capacity * self.position_bytes()
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}
