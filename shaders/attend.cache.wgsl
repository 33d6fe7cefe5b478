// Attention over a cache that holds the step's own tokens already.

@group(0) @binding(4) var<storage, read> keys: array<array<Stored, BLOCK_VECTORS>>;
@group(0) @binding(5) var<storage, read> values: array<array<Stored, BLOCK_VECTORS>>;

fn complete_cache(kv_head: u32, local: u32, is_last: bool) {
}
