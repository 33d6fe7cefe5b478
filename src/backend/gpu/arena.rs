//! Buffers for activations. A step asks for the same sizes in the same order as the last one and gets the same
//! buffers, so that its bind groups can be kept.

use super::device::Device;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Buffers that are free, by size.
#[derive(Clone, Default)]
pub struct Arena(Rc<RefCell<Shelves>>);

#[derive(Default)]
struct Shelves {
    buffers: Vec<wgpu::Buffer>,
    /// Sizes → places in `buffers`. The first is always taken first: which buffer a request gets depends on
    /// what is in use, not on the order in which things were given back.
    free: BTreeMap<u64, BTreeSet<usize>>,
}

/// A buffer in use; dropping gives it back.
pub struct Lease {
    pub buffer: wgpu::Buffer,
    place: usize,
    size: u64,
    arena: Arena,
}

impl Arena {
    /// A buffer of at least `bytes`, with whatever it held before.
    pub fn lease(&self, device: &Device, bytes: u64, created: impl FnOnce()) -> Lease {
        let size = size_class(bytes);
        let mut shelves = self.0.borrow_mut();
        let place = shelves.free.entry(size).or_default().pop_first().unwrap_or_else(|| {
            created();
            shelves.buffers.push(device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("activations"),
                size,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }));
            shelves.buffers.len() - 1
        });
        Lease { buffer: shelves.buffers[place].clone(), place, size, arena: self.clone() }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.arena.0.borrow_mut().free.entry(self.size).or_default().insert(self.place);
    }
}

/// Small sizes are powers of two, large ones whole mebibytes.
fn size_class(bytes: u64) -> u64 {
    const MIB: u64 = 1 << 20;
    if bytes > MIB { bytes.next_multiple_of(MIB) } else { bytes.next_power_of_two().max(256) }
}
