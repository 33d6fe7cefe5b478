//! What all verbs of the GPU backend share.

use super::arena::{Arena, Lease};
use super::device::Device;
use super::kernels::{Constant, Kernel, Kernels, Recipe, Texts};
use super::recorder::{Dispatch, Recorder};
use super::rope::RopeTable;
use super::variants::Variants;
use super::weights::Store;
use std::cell::Cell;
use std::rc::Rc;

/// Tokens of a step at most; the buffer of its input holds as many ids.
pub const MOST_TOKENS: usize = 1024;

pub struct Context {
    pub device: Device,
    pub kernels: Kernels,
    pub recorder: Recorder,
    pub arena: Arena,
    pub store: Store,
    pub rope: RopeTable,
    pub variants: Cell<Variants>,
    /// The position of the step's first token, then its ids. The host writes it, or the choice of a token.
    pub input: wgpu::Buffer,
    /// Bytes written since queued writes were last handed over.
    queued: Cell<usize>,
}

/// Queued writes are handed over when they come to this: until then they are held as copies.
const MOST_QUEUED: usize = 32 << 20;

impl Context {
    pub fn new(device: Device, variants: Variants, shaders: Texts) -> Self {
        let input = storage(&device, 4 * (1 + MOST_TOKENS as u64), "input");
        Self {
            rope: RopeTable::default(),
            device,
            kernels: Kernels::new(shaders),
            recorder: Recorder::default(),
            arena: Arena::default(),
            store: Store::default(),
            variants: Cell::new(variants),
            input,
            queued: Cell::new(0),
        }
    }

    pub fn kernel(&self, parts: &[&'static str], constants: &[(&'static str, Constant)]) -> Rc<Kernel> {
        let recipe = Recipe { parts: parts.to_vec(), constants: constants.to_vec() };
        self.kernels.get(&self.device, recipe)
    }

    pub fn dispatch(&self, dispatch: Dispatch<'_>) {
        self.recorder.dispatch(&self.device, dispatch);
    }

    /// A buffer of `count` `f32`s (or words) for a step.
    pub fn lease(&self, count: usize) -> Lease {
        self.arena.lease(&self.device, 4 * count as u64, || self.recorder.count(|c| c.created += 1))
    }

    /// A buffer that stays.
    pub fn storage(&self, bytes: u64, label: &str) -> wgpu::Buffer {
        self.recorder.count(|counters| counters.created += 1);
        storage(&self.device, bytes, label)
    }

    pub fn submit(&self) {
        self.recorder.submit(&self.device);
    }

    /// Counts an upload, and hands queued ones over when there are many.
    pub fn note_upload(&self, bytes: usize) {
        let queued = self.queued.get() + bytes;
        self.queued.set(if queued < MOST_QUEUED { queued } else { 0 });
        if queued >= MOST_QUEUED {
            self.device.queue.submit([]);
        }
    }
}

fn storage(device: &Device, bytes: u64, label: &str) -> wgpu::Buffer {
    device.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: bytes.next_multiple_of(16).max(16),
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}
