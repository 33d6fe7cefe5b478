//! Records dispatches into one command encoder, until something has to be known: then all of it is submitted
//! at once. Uniforms and bind groups are kept by what they hold, so that a step like the last one creates
//! nothing.

use super::device::Device;
use super::kernels::Kernel;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// What has been done since the device was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub dispatches: usize,
    pub submits: usize,
    pub bytes_read: u64,
    /// Bind groups, uniforms and buffers.
    pub created: usize,
}

/// A kernel with its arguments.
pub struct Dispatch<'a> {
    pub kernel: Rc<Kernel>,
    /// Uniforms: their bindings and words.
    pub params: &'a [(u32, &'a [u32])],
    /// The other bindings and their buffers.
    pub buffers: &'a [(u32, &'a wgpu::Buffer)],
    pub workgroups: [u32; 3],
}

#[derive(Default)]
pub struct Recorder {
    open: RefCell<Open>,
    uniforms: RefCell<HashMap<Vec<u32>, wgpu::Buffer>>,
    groups: RefCell<HashMap<(usize, Vec<wgpu::Buffer>), wgpu::BindGroup>>,
    counters: Cell<Counters>,
}

/// What was recorded since the last submit. The pass comes first: it must be dropped before its encoder.
#[derive(Default)]
struct Open {
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
}

/// Uniforms and bind groups that are kept at most: prompts of ever new lengths must not pile them up.
const MOST_KEPT: usize = 4096;

impl Recorder {
    pub fn dispatch(&self, device: &Device, dispatch: Dispatch<'_>) {
        if dispatch.workgroups.contains(&0) {
            return;
        }
        let group = self.group(device, &dispatch);
        let mut open = self.open.borrow_mut();
        let pass = open.pass(device);
        pass.set_pipeline(&dispatch.kernel.pipeline);
        pass.set_bind_group(0, &group, &[]);
        let [x, y, z] = dispatch.workgroups;
        pass.dispatch_workgroups(x, y, z);
        self.count(|counters| counters.dispatches += 1);
    }

    pub fn copy(&self, device: &Device, from: (&wgpu::Buffer, u64), to: (&wgpu::Buffer, u64), bytes: u64) {
        let mut open = self.open.borrow_mut();
        open.encoder(device).copy_buffer_to_buffer(from.0, from.1, to.0, to.1, bytes);
    }

    /// Hands everything recorded to the device.
    pub fn submit(&self, device: &Device) {
        let Open { pass, encoder } = std::mem::take(&mut *self.open.borrow_mut());
        drop(pass);
        if let Some(encoder) = encoder {
            device.queue.submit([encoder.finish()]);
            self.count(|counters| counters.submits += 1);
        }
    }

    /// Forgets bind groups, which keep their buffers alive.
    pub fn forget_groups(&self) {
        self.groups.borrow_mut().clear();
    }

    pub fn counters(&self) -> Counters {
        self.counters.get()
    }

    pub fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    fn uniform(&self, device: &Device, params: &[u32]) -> wgpu::Buffer {
        let mut uniforms = self.uniforms.borrow_mut();
        if let Some(buffer) = uniforms.get(params) {
            return buffer.clone();
        }
        if uniforms.len() >= MOST_KEPT {
            uniforms.clear();
            self.forget_groups();
        }
        self.count(|counters| counters.created += 1);
        let bytes: &[u8] = bytemuck::cast_slice(params);
        let buffer = device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("params"),
            size: (bytes.len() as u64).next_multiple_of(16),
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        device.queue.write_buffer(&buffer, 0, bytes);
        uniforms.insert(params.to_vec(), buffer.clone());
        buffer
    }

    fn group(&self, device: &Device, dispatch: &Dispatch<'_>) -> wgpu::BindGroup {
        let uniforms = dispatch.params.iter().map(|(_, words)| self.uniform(device, words));
        let buffers = dispatch.buffers.iter().map(|(_, buffer)| (*buffer).clone());
        let key: (usize, Vec<wgpu::Buffer>) = (dispatch.kernel.id, uniforms.chain(buffers).collect());
        let mut groups = self.groups.borrow_mut();
        if let Some(group) = groups.get(&key) {
            return group.clone();
        }
        if groups.len() >= MOST_KEPT {
            groups.clear();
        }
        self.count(|counters| counters.created += 1);
        let bindings = dispatch.params.iter().map(|(binding, _)| *binding);
        let bindings = bindings.chain(dispatch.buffers.iter().map(|(binding, _)| *binding));
        let entries: Vec<_> = bindings
            .zip(&key.1)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = device.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &dispatch.kernel.layout,
            entries: &entries,
        });
        groups.insert(key, group.clone());
        group
    }
}

impl Open {
    fn pass(&mut self, device: &Device) -> &mut wgpu::ComputePass<'static> {
        if self.pass.is_none() {
            let encoder = self.encoder(device);
            let pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()).forget_lifetime();
            self.pass = Some(pass);
        }
        self.pass.as_mut().expect("opened above")
    }

    /// The encoder, with no pass open.
    fn encoder(&mut self, device: &Device) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.encoder.get_or_insert_with(|| device.device.create_command_encoder(&Default::default()))
    }
}
