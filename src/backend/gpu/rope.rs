//! Cosines and sines of RoPE on the GPU, a table that grows with the context.

use super::context::Context;
use crate::model::RopeFrequencies;
use std::cell::RefCell;

/// Positions that the table gains at least.
const STEP: usize = 256;

#[derive(Default)]
pub struct RopeTable {
    state: RefCell<Option<State>>,
}

struct State {
    /// What the table is of: models on one device may differ.
    frequencies: RopeFrequencies,
    buffer: wgpu::Buffer,
    /// Positions that the buffer holds, and those that are filled in.
    capacity: usize,
    filled: usize,
}

impl RopeTable {
    /// The table, with positions `0..end` at least.
    pub fn upto(&self, context: &Context, frequencies: &RopeFrequencies, end: usize) -> wgpu::Buffer {
        let mut state = self.state.borrow_mut();
        let row = frequencies.len() * 2 * size_of::<f32>();
        let old = state.take().filter(|state| state.capacity >= end && state.frequencies == *frequencies);
        let state = state.insert(old.unwrap_or_else(|| {
            let capacity = end.next_power_of_two().max(STEP);
            context.recorder.forget_groups();
            let buffer = context.storage((capacity * row) as u64, "rope");
            State { frequencies: frequencies.clone(), buffer, capacity, filled: 0 }
        }));
        if state.filled < end {
            let to = end.next_multiple_of(STEP).min(state.capacity);
            let angles = frequencies.angles(state.filled, to - state.filled);
            let pairs: Vec<[f32; 2]> = angles.cos.iter().zip(&angles.sin).map(|(c, s)| [*c, *s]).collect();
            let at = (state.filled * row) as u64;
            context.device.queue.write_buffer(&state.buffer, at, bytemuck::cast_slice(&pairs));
            state.filled = to;
        }
        state.buffer.clone()
    }
}
