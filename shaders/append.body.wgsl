// Normalises and turns a token's key head, and puts key and value into the cache,
// `[positions, KV_HEADS, QUADS]`.

@group(0) @binding(4) var<storage, read_write> keys: array<Stored>;
@group(0) @binding(5) var<storage, read_write> values: array<Stored>;

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

/// The share of lane `local` of `lanes`.
fn append(token: u32, kv_head: u32, local: u32, lanes: u32) {
    let position = input[0] + token;
    let key = params.key + (token * KV_HEADS + kv_head) * HEAD_DIM;
    let value = params.value + (token * KV_HEADS + kv_head) * HEAD_DIM;
    var inverse = 1.0;
    if (KEY_NORM) {
        inverse = inverse_rms(key);
    }
    for (var quad = local; quad < QUADS; quad += lanes) {
        let dim = 4u * quad;
        let at = (position * KV_HEADS + kv_head) * QUADS + quad;
        keys[at] = keep(vec4(
            key_element(key, dim, inverse, position), key_element(key, dim + 1u, inverse, position),
            key_element(key, dim + 2u, inverse, position), key_element(key, dim + 3u, inverse, position),
        ));
        values[at] = keep(vec4(
            value_element(value, dim), value_element(value, dim + 1u),
            value_element(value, dim + 2u), value_element(value, dim + 3u),
        ));
    }
}
