//! Rows of the embedding table (`shaders/embed.*.wgsl`).

use super::context::{Context, MOST_TOKENS};
use super::recorder::Dispatch;
use super::tensor::GpuTensor;
use super::weights::GpuMatrix;
use crate::quant::ternary::{CHUNK_COLS, COL_ALIGN};

/// Makes `ids` the input of the next step, which begins at `position`.
pub fn set_input(context: &Context, position: usize, ids: &[u32]) {
    assert!(ids.len() <= MOST_TOKENS, "a step takes {MOST_TOKENS} tokens at most");
    // What was recorded reads the present input: a queued write comes before everything that is submitted
    // after it.
    context.submit();
    let mut words = Vec::with_capacity(1 + ids.len());
    words.push(position as u32);
    words.extend_from_slice(ids);
    context.device.queue.write_buffer(&context.input, 0, bytemuck::cast_slice(&words));
}

/// The rows of the step's input.
pub fn embed(context: &Context, table: &GpuMatrix, tokens: usize) -> GpuTensor {
    let out = GpuTensor::new(context, tokens, table.cols());
    match table {
        GpuMatrix::Dense(table) => {
            let kernel = context.kernel(&["rows", table.encoding.part(), "embed.dense"], &[]);
            for block in &table.blocks {
                let params = [
                    table.vectors as u32,
                    block.first_row as u32,
                    block.rows as u32,
                    table.cols as u32,
                    block.scales,
                    0,
                    block.steps,
                    0,
                ];
                context.dispatch(Dispatch {
                    kernel: kernel.clone(),
                    params: &[(0, &params)],
                    buffers: &[
                        (1, &block.buffer),
                        (2, &context.input),
                        (3, out.buffer()),
                        (4, &block.buffer),
                    ],
                    workgroups: [table.vectors.div_ceil(64) as u32, tokens as u32, 1],
                });
            }
        }
        GpuMatrix::Ternary(table) => {
            let kernel = context.kernel(&["embed.ternary"], &[]);
            for part in &table.parts {
                let params = [
                    (table.cols.next_multiple_of(COL_ALIGN) / CHUNK_COLS) as u32,
                    part.rows as u32,
                    table.cols as u32,
                    part.codes,
                    part.scales,
                    table.group.map_or(table.cols, |chunks| chunks * CHUNK_COLS) as u32,
                    part.scale.to_bits(),
                    0,
                    part.first_row as u32,
                    0,
                    0,
                    0,
                ];
                context.dispatch(Dispatch {
                    kernel: kernel.clone(),
                    params: &[(0, &params)],
                    buffers: &[(1, &part.buffer), (2, &context.input), (3, out.buffer())],
                    workgroups: [table.cols.div_ceil(64) as u32, tokens as u32, 1],
                });
            }
        }
    }
    out
}
