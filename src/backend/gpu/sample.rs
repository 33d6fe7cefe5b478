//! Choosing tokens on the GPU (`shaders/argmax.wgsl`, `shaders/draw.wgsl`): the chosen token is the next step's
//! input at once, and its id follows to the host.

use super::arena::Lease;
use super::context::Context;
use super::kernels::Constant;
use super::recorder::Dispatch;
use super::tensor::GpuTensor;
use crate::Result;
use crate::generate::sampler::{SamplerOptions, UniformDraws};
use std::cell::RefCell;
use std::rc::Rc;

/// Numbers that the GPU holds; a half is written while the other is in use.
const SLOTS: usize = 256;
/// Workgroups that share the vocabulary in greedy decoding.
const PARTS: u32 = 64;

/// The state of one generation's sampling.
pub struct GpuSampler {
    options: SamplerOptions,
    vocab_size: usize,
    /// A bit for each token that was said.
    said: Lease,
    /// How many steps have drawn, then [`SLOTS`] uniform numbers.
    random: Lease,
    draws: UniformDraws,
    steps: usize,
    staging: Rc<RefCell<Vec<wgpu::Buffer>>>,
}

/// A token that was chosen; its id is on the way.
#[derive(Clone)]
pub struct Choice {
    reading: Rc<Reading>,
}

struct Reading {
    buffer: wgpu::Buffer,
    /// Where the buffer goes back to.
    staging: Rc<RefCell<Vec<wgpu::Buffer>>>,
}

impl GpuSampler {
    pub fn new(context: &Context, options: SamplerOptions, said: &[u32], vocab_size: usize) -> Self {
        let mut bits = vec![0u32; vocab_size.div_ceil(32)];
        for id in said {
            if let Some(word) = bits.get_mut(*id as usize / 32) {
                *word |= 1 << (id % 32);
            }
        }
        // Another generation's steps may be recorded that use the same buffers.
        context.submit();
        let (said, random) = (context.lease(bits.len()), context.lease(1 + SLOTS));
        context.device.queue.write_buffer(&said.buffer, 0, bytemuck::cast_slice(&bits));
        context.device.queue.write_buffer(&random.buffer, 0, bytemuck::bytes_of(&0u32));
        let draws = UniformDraws::new(&options);
        Self { options, vocab_size, said, random, draws, steps: 0, staging: Default::default() }
    }

    pub fn choose(&mut self, context: &Context, logits: &GpuTensor, tokens: usize) -> Choice {
        let is_greedy = self.options.temperature == 0.0;
        if !is_greedy && self.steps.is_multiple_of(SLOTS / 2) {
            self.refill(context);
        }
        self.steps += 1;
        let params = [
            self.options.repetition_penalty.to_bits(),
            if is_greedy { 0 } else { (1.0 / self.options.temperature).to_bits() },
            self.options.top_k as u32,
            self.options.top_p.to_bits(),
            self.options.min_p.to_bits(),
            tokens as u32,
            PARTS,
        ];
        let constants = [
            ("VOCABULARY", Constant::Count(self.vocab_size as u32)),
            ("PENALTY", Constant::Flag(self.options.repetition_penalty != 1.0)),
        ];
        let own_row = self.own_row(context, logits);
        let logits = own_row.as_ref().map_or(logits.buffer(), |row| &row.buffer);
        let said = (2, &self.said.buffer);
        if is_greedy {
            let best = context.lease(2 * PARTS as usize);
            context.dispatch(Dispatch {
                kernel: context.kernel(&["choose.penalty", "argmax.part"], &constants),
                params: &[(0, &params)],
                buffers: &[(1, logits), said, (3, &best.buffer)],
                workgroups: [PARTS, 1, 1],
            });
            context.dispatch(Dispatch {
                kernel: context.kernel(&["choose.penalty", "choose.finish", "argmax"], &constants),
                params: &[(0, &params)],
                buffers: &[said, (3, &context.input), (4, &best.buffer)],
                workgroups: [1, 1, 1],
            });
        } else {
            context.dispatch(Dispatch {
                kernel: context.kernel(&["choose.penalty", "choose.finish", "draw"], &constants),
                params: &[(0, &params)],
                buffers: &[(1, logits), said, (3, &context.input), (4, &self.random.buffer)],
                workgroups: [1, 1, 1],
            });
        }
        self.start_reading(context)
    }

    /// A copy of logits that lie behind others: kernels read them from the beginning of a buffer.
    fn own_row(&self, context: &Context, logits: &GpuTensor) -> Option<Lease> {
        if logits.offset == 0 {
            return None;
        }
        let row = context.lease(self.vocab_size);
        let bytes = size_of::<f32>() as u64;
        let from = (logits.buffer(), bytes * logits.offset as u64);
        context.recorder.copy(&context.device, from, (&row.buffer, 0), bytes * self.vocab_size as u64);
        Some(row)
    }

    fn refill(&mut self, context: &Context) {
        let numbers: Vec<f32> = (0..SLOTS / 2).map(|_| self.draws.single()).collect();
        let place = self.steps % SLOTS;
        let at = (size_of::<u32>() * (1 + place)) as u64;
        context.device.queue.write_buffer(&self.random.buffer, at, bytemuck::cast_slice(&numbers));
    }

    fn start_reading(&self, context: &Context) -> Choice {
        let buffer = self.staging.borrow_mut().pop().unwrap_or_else(|| {
            context.recorder.count(|counters| counters.created += 1);
            context.device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("chosen"),
                size: ID_BYTES,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        context.recorder.copy(&context.device, (&context.input, ID_BYTES), (&buffer, 0), ID_BYTES);
        context.submit();
        Choice { reading: Rc::new(Reading { buffer, staging: self.staging.clone() }) }
    }
}

const ID_BYTES: u64 = 4;

impl Choice {
    /// # Errors
    /// As [`crate::backend::Backend::read`].
    pub async fn id(self, context: &Context) -> Result<u32> {
        let Reading { buffer, staging } = &*self.reading;
        let bytes = context.device.map(buffer, ID_BYTES).await?;
        context.recorder.count(|counters| counters.bytes_read += ID_BYTES);
        staging.borrow_mut().push(buffer.clone());
        Ok(u32::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }
}
