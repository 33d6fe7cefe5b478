// Normalises and turns a token's key head, and puts key and value into the cache,
// `[positions, KV_HEADS, VECTOR]`: quads of dimensions, and where the format (kv.*.wgsl) has them, units.

@group(0) @binding(4) var<storage, read_write> keys: array<array<Stored, BLOCK_VECTORS>>;
@group(0) @binding(5) var<storage, read_write> values: array<array<Stored, BLOCK_VECTORS>>;

fn key_element(at: u32, dim: u32, inverse: f32, position: u32) -> f32 {
    if (dim >= HEAD_DIM) {
        return 0.0;
    }
    let partner = partner_of(dim);
    let own = heads[at + dim] * inverse * key_weight(dim);
    return turn(own, heads[at + partner] * inverse * key_weight(partner), dim, position);
}

fn value_element(at: u32, dim: u32) -> f32 {
    if (dim >= HEAD_DIM) {
        return 0.0;
    }
    return heads[at + dim];
}

fn key_quad(at: u32, quad: u32, inverse: f32, position: u32) -> vec4<f32> {
    let dim = 4u * quad;
    return vec4(
        key_element(at, dim, inverse, position), key_element(at, dim + 1u, inverse, position),
        key_element(at, dim + 2u, inverse, position), key_element(at, dim + 3u, inverse, position),
    );
}

fn value_quad(at: u32, quad: u32) -> vec4<f32> {
    let dim = 4u * quad;
    return vec4(
        value_element(at, dim), value_element(at, dim + 1u),
        value_element(at, dim + 2u), value_element(at, dim + 3u),
    );
}

/// The largest magnitudes of the key and the value: bits of singles that are not negative are in their order.
var<workgroup> largest_key: atomic<u32>;
var<workgroup> largest_value: atomic<u32>;

fn largest_of(quad: vec4<f32>) -> u32 {
    let magnitudes = abs(quad);
    return bitcast<u32>(max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w)));
}

/// The share of lane `local` of `lanes`, which are a workgroup.
fn append(token: u32, kv_head: u32, local: u32, lanes: u32) {
    let position = input[0] + token;
    let key = params.key + (token * KV_HEADS + kv_head) * HEAD_DIM;
    let value = params.value + (token * KV_HEADS + kv_head) * HEAD_DIM;
    var inverse = 1.0;
    if (KEY_NORM) {
        inverse = inverse_rms(key);
    }
    if (HAS_UNITS) {
        for (var quad = local; quad < QUADS; quad += lanes) {
            atomicMax(&largest_key, largest_of(key_quad(key, quad, inverse, position)));
            atomicMax(&largest_value, largest_of(value_quad(value, quad)));
        }
        workgroupBarrier();
    }
    let key_unit = unit_for(bitcast<f32>(atomicLoad(&largest_key)));
    let value_unit = unit_for(bitcast<f32>(atomicLoad(&largest_value)));
    let key_block = &keys[position / BLOCK];
    let value_block = &values[position / BLOCK];
    let at = (position % BLOCK * KV_HEADS + kv_head) * VECTOR;
    for (var quad = local; quad < QUADS; quad += lanes) {
        (*key_block)[at + quad] = keep(key_quad(key, quad, inverse, position), key_unit);
        (*value_block)[at + quad] = keep(value_quad(value, quad), value_unit);
    }
    if (HAS_UNITS && local == 0u) {
        (*key_block)[at + QUADS] = keep_unit(key_unit);
        (*value_block)[at + QUADS] = keep_unit(value_unit);
    }
}
