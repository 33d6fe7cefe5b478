//! Causal grouped-query attention (<https://arxiv.org/abs/2305.13245>) over the KV cache.

#[cfg(target_feature = "simd128")]
mod ahead;
mod floats;
#[cfg(not(target_feature = "simd128"))]
mod floats_portable;
#[cfg(target_feature = "simd128")]
mod floats_simd128;
mod integers;
#[cfg(not(target_feature = "simd128"))]
mod integers_portable;
#[cfg(target_feature = "simd128")]
mod integers_simd128;
mod pass;

use super::Cpu;
use super::cache::{BLOCK_TOKENS, CpuCache, LayerCache};
use super::norm::rms_norm_in_place;
use super::pool::Pool;
use super::tensor::CpuTensor;
use super::tiles::{TILE_BYTES, TileShape, for_tiles};
use crate::Result;
use crate::backend::{AttentionInput, KvCache, RopeAngles};
use pass::attend_head;
use std::sync::Arc;

/// Tokens of a prompt that one thread attends for.
const TILE_TOKENS: usize = 8;
/// See [`crate::backend::Backend::attend`].
pub fn attend(
    pool: &Pool,
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
    let group = input.query.width() / kv_heads;
    let layer = &*layer;
    for_tiles(pool, [(&mut out, tile_shape(tokens, start + tokens, group))], |_, mut tile| {
        for first_column in tile.columns.clone().step_by(group) {
            let columns = first_column..first_column + group;
            attend_head(layer, &input.query, head_dim, start, columns, &mut tile);
        }
    });
    Ok(out)
}

/// Tiles of some tokens and of whole groups of query heads that share a key/value head, `group` columns
/// each, over `end` positions.
fn tile_shape(tokens: usize, end: usize, group: usize) -> TileShape {
    let tokens = tokens.min(TILE_TOKENS);
    // A key and a value, once a query head.
    let bytes = tokens * end * group * 2 * size_of::<u16>();
    TileShape { tokens, columns: group * TILE_BYTES.div_ceil(bytes) }
}

fn normalise_heads(x: &mut CpuTensor, head_dim: usize, weight: Option<&Arc<[f32]>>, eps: f32) {
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
