//! Causal grouped-query attention (<https://arxiv.org/abs/2305.13245>) over the KV cache.

use super::Cpu;
use super::cache::{BLOCK_TOKENS, CpuCache, LayerCache};
use super::float::{add_scaled, dot, exp, maximum};
use super::norm::rms_norm_in_place;
use super::tensor::CpuTensor;
use crate::Result;
use crate::backend::{AttentionInput, KvCache, RopeAngles};

/// See [`crate::backend::Backend::attend`].
pub fn attend(
    mut input: AttentionInput<'_, Cpu>,
    angles: &RopeAngles,
    cache: &mut CpuCache,
) -> Result<CpuTensor> {
    let tokens = input.query.tokens();
    let head_dim = 2 * angles.cos.len() / tokens;
    normalise_heads(&mut input.query, head_dim, input.query_norm, input.norm_eps);
    normalise_heads(&mut input.key, head_dim, input.key_norm, input.norm_eps);
    rotate_heads(&mut input.query, head_dim, angles);
    rotate_heads(&mut input.key, head_dim, angles);

    let start = cache.len();
    let layer = cache.layer_mut(input.layer, start + tokens)?;
    append(layer, start, head_dim, &input.key, &input.value);

    let kv_heads = input.key.width() / head_dim;
    let mut out = CpuTensor::zeros(tokens, input.query.width());
    let mut pass = HeadPass { head_dim, start, scores: Vec::new(), scratch: Vec::new() };
    for kv_head in 0..kv_heads {
        pass.run(layer, kv_head, &input.query, kv_heads, &mut out);
    }
    Ok(out)
}

fn normalise_heads(x: &mut CpuTensor, head_dim: usize, weight: Option<&Vec<f32>>, eps: f32) {
    let Some(weight) = weight else { return };
    for head in x.data_mut().chunks_exact_mut(head_dim) {
        rms_norm_in_place(head, weight, eps);
    }
}

/// Half-split rotation: pair `(i, i + head_dim/2)`.
fn rotate_heads(x: &mut CpuTensor, head_dim: usize, angles: &RopeAngles) {
    let half = head_dim / 2;
    for token in 0..x.tokens() {
        let (cos, sin) = (&angles.cos[token * half..][..half], &angles.sin[token * half..][..half]);
        for head in x.row_mut(token).chunks_exact_mut(head_dim) {
            let (first, second) = head.split_at_mut(half);
            for i in 0..half {
                let (a, b) = (first[i], second[i]);
                first[i] = a * cos[i] - b * sin[i];
                second[i] = b * cos[i] + a * sin[i];
            }
        }
    }
}

fn append(layer: &mut LayerCache, start: usize, head_dim: usize, key: &CpuTensor, value: &CpuTensor) {
    for token in 0..key.tokens() {
        let (block, slot) = ((start + token) / BLOCK_TOKENS, (start + token) % BLOCK_TOKENS);
        let heads = key.row(token).chunks_exact(head_dim).zip(value.row(token).chunks_exact(head_dim));
        for (head, (key, value)) in heads.enumerate() {
            layer.keys[block].store(head, slot, key);
            layer.values[block].store(head, slot, value);
        }
    }
}

/// Attention of all query heads that share one key/value head.
struct HeadPass {
    head_dim: usize,
    /// Position of the first token.
    start: usize,
    /// `[tokens · group, end]`, one row a (token, query head).
    scores: Vec<f32>,
    scratch: Vec<f32>,
}

impl HeadPass {
    fn run(
        &mut self,
        layer: &LayerCache,
        kv_head: usize,
        query: &CpuTensor,
        kv_heads: usize,
        out: &mut CpuTensor,
    ) {
        let tokens = query.tokens();
        let group = query.width() / self.head_dim / kv_heads;
        let end = self.start + tokens;
        let first_column = kv_head * group * self.head_dim;
        let columns = |member: usize| {
            let from = first_column + member * self.head_dim;
            from..from + self.head_dim
        };

        self.scores.clear();
        self.scores.resize(tokens * group * end, 0.0);
        let scale = 1.0 / (self.head_dim as f32).sqrt();
        for (block, positions) in blocks(end) {
            let keys = layer.keys[block].head(kv_head, positions.len(), self.head_dim, &mut self.scratch);
            for token in 0..tokens {
                let seen = visible(&positions, self.start + token);
                for member in 0..group {
                    let query = &query.row(token)[columns(member)];
                    let row = &mut self.scores[(token * group + member) * end + positions.start..][..seen];
                    for (score, key) in row.iter_mut().zip(keys.chunks_exact(self.head_dim)) {
                        *score = dot(query, key) * scale;
                    }
                }
            }
        }
        for (row, scores) in self.scores.chunks_exact_mut(end).enumerate() {
            softmax(&mut scores[..self.start + row / group + 1]);
        }
        for (block, positions) in blocks(end) {
            let values = layer.values[block].head(kv_head, positions.len(), self.head_dim, &mut self.scratch);
            for token in 0..tokens {
                let seen = visible(&positions, self.start + token);
                for member in 0..group {
                    let out = &mut out.row_mut(token)[columns(member)];
                    let row = &self.scores[(token * group + member) * end + positions.start..][..seen];
                    for (weight, value) in row.iter().zip(values.chunks_exact(self.head_dim)) {
                        add_scaled(out, *weight, value);
                    }
                }
            }
        }
    }
}

/// The blocks of positions `0..end`.
fn blocks(end: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    (0..end.div_ceil(BLOCK_TOKENS))
        .map(move |block| (block, block * BLOCK_TOKENS..end.min((block + 1) * BLOCK_TOKENS)))
}

/// How many of `positions` a token at `position` may see.
fn visible(positions: &std::ops::Range<usize>, position: usize) -> usize {
    (position + 1).clamp(positions.start, positions.end) - positions.start
}

fn softmax(scores: &mut [f32]) {
    let max = maximum(scores);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = exp(*score - max);
        sum += *score;
    }
    let inverse = 1.0 / sum;
    for score in scores {
        *score *= inverse;
    }
}
