// Causal grouped-query attention (https://arxiv.org/abs/2305.13245) over the KV cache with a running softmax
// (https://arxiv.org/abs/2205.14135): no matrix of scores, whatever the length of the context. A workgroup
// takes ROWS pairs of token and query head that share a key/value head, and one stretch of positions.
//
// ROWS   a multiple of four
// SPLIT  whether stretches are joined afterwards (source.partials.wgsl)

const WORKGROUP = BLOCK;
const HIDDEN = -1e30;

@group(0) @binding(6) var<storage, read_write> out: array<f32>;

var<workgroup> queries: array<vec4<f32>, ROWS * QUADS>;
var<workgroup> sums: array<vec4<f32>, ROWS * QUADS>;
/// Scores, then weights, of the tile's positions.
var<workgroup> scores: array<f32, ROWS * WORKGROUP>;
var<workgroup> greatest: array<f32, ROWS>;
var<workgroup> correction: array<f32, ROWS>;
var<workgroup> weight_sums: array<f32, ROWS>;
var<workgroup> inverses: array<f32, ROWS>;
/// What a unit of the values of the tile's positions is worth, where they have units.
var<workgroup> value_units: array<f32, select(1u, WORKGROUP, HAS_UNITS)>;

fn query_at(row: u32, kv_head: u32) -> u32 {
    return params.query + (row / GROUP * HEADS + kv_head * GROUP + row % GROUP) * HEAD_DIM;
}

fn query_element(at: u32, dim: u32, inverse: f32, position: u32) -> f32 {
    if (dim >= HEAD_DIM) {
        return 0.0;
    }
    let partner = partner_of(dim);
    let own = heads[at + dim] * inverse * query_weight(dim);
    return turn(own, heads[at + partner] * inverse * query_weight(partner), dim, position);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let kv_head = workgroup.x;
    let first_row = workgroup.y * ROWS;
    let rows = min(params.tokens * GROUP - first_row, ROWS);
    let start = input[0];
    // One past the last position that any row of this workgroup may see, in its stretch.
    let visible = start + (first_row + rows - 1u) / GROUP + 1u;
    let first = workgroup.z * params.stretch;
    let end = min(visible, first + params.stretch);

    complete_cache(kv_head, local, end == visible);
    if (local < ROWS) {
        greatest[local] = HIDDEN;
        weight_sums[local] = 0.0;
        inverses[local] = 1.0;
        if (QUERY_NORM && local < rows) {
            inverses[local] = inverse_rms(query_at(first_row + local, kv_head));
        }
    }
    workgroupBarrier();
    let scale = 1.0 / sqrt(f32(HEAD_DIM));
    for (var item = local; item < ROWS * QUADS; item += WORKGROUP) {
        let row = item / QUADS;
        let dim = 4u * (item % QUADS);
        sums[item] = vec4(0.0);
        var quad = vec4(0.0);
        if (row < rows) {
            let at = query_at(first_row + row, kv_head);
            let position = start + (first_row + row) / GROUP;
            quad = vec4(
                query_element(at, dim, inverses[row], position),
                query_element(at, dim + 1u, inverses[row], position),
                query_element(at, dim + 2u, inverses[row], position),
                query_element(at, dim + 3u, inverses[row], position),
            );
        }
        queries[item] = quad * scale;
    }
    workgroupBarrier();

    for (var tile = first; tile < end; tile += WORKGROUP) {
        let position = tile + local;
        let key_block = &keys[tile / BLOCK];
        let value_block = &values[tile / BLOCK];
        let key = (min(local, end - 1u - tile) * KV_HEADS + kv_head) * VECTOR;
        var key_unit = 1.0;
        if (HAS_UNITS) {
            key_unit = kept_unit((*key_block)[key + QUADS]);
            value_units[local] = kept_unit((*value_block)[key + QUADS]);
        }
        for (var row = 0u; row < ROWS; row += 4u) {
            var four = vec4(0.0);
            for (var quad = 0u; quad < QUADS; quad++) {
                let k = kept((*key_block)[key + quad]);
                four += vec4(
                    dot(queries[row * QUADS + quad], k),
                    dot(queries[(row + 1u) * QUADS + quad], k),
                    dot(queries[(row + 2u) * QUADS + quad], k),
                    dot(queries[(row + 3u) * QUADS + quad], k),
                );
            }
            let token = start + (vec4(first_row + row) + vec4(0u, 1u, 2u, 3u)) / GROUP;
            let is_seen = (vec4(position) <= token) & vec4(position < end);
            four = select(vec4(HIDDEN), four * key_unit, is_seen);
            scores[row * WORKGROUP + local] = four.x;
            scores[(row + 1u) * WORKGROUP + local] = four.y;
            scores[(row + 2u) * WORKGROUP + local] = four.z;
            scores[(row + 3u) * WORKGROUP + local] = four.w;
        }
        workgroupBarrier();
        if (local < ROWS) {
            let before = greatest[local];
            var after = before;
            for (var i = 0u; i < WORKGROUP; i++) {
                after = max(after, scores[local * WORKGROUP + i]);
            }
            greatest[local] = after;
            correction[local] = exponential(before - after);
        }
        workgroupBarrier();
        for (var row = 0u; row < ROWS; row++) {
            let score = scores[row * WORKGROUP + local];
            var weight = 0.0;
            if (score > HIDDEN) {
                weight = exponential(score - greatest[row]);
            }
            scores[row * WORKGROUP + local] = weight;
        }
        workgroupBarrier();
        if (local < ROWS) {
            var sum = weight_sums[local] * correction[local];
            for (var i = 0u; i < WORKGROUP; i++) {
                sum += scores[local * WORKGROUP + i];
            }
            weight_sums[local] = sum;
        }
        let count = min(end - tile, WORKGROUP);
        for (var item = local; item < ROWS * QUADS; item += WORKGROUP) {
            let row = item / QUADS;
            var value = kv_head * VECTOR + item % QUADS;
            var sum = sums[item] * correction[row];
            for (var i = 0u; i < count; i++) {
                var weight = scores[row * WORKGROUP + i];
                if (HAS_UNITS) {
                    weight *= value_units[i];
                }
                sum += kept((*value_block)[value]) * weight;
                value += KV_HEADS * VECTOR;
            }
            sums[item] = sum;
        }
        workgroupBarrier();
    }

    for (var item = local; item < ROWS * QUADS; item += WORKGROUP) {
        let row = item / QUADS;
        if (row >= rows) {
            continue;
        }
        let head = (first_row + row) / GROUP * HEADS + kv_head * GROUP + (first_row + row) % GROUP;
        var at = head * HEAD_DIM;
        var result = sums[item];
        if (SPLIT) {
            at = (head * params.splits + workgroup.z) * HEAD_DIM;
        } else {
            result /= weight_sums[row];
        }
        let dim = 4u * (item % QUADS);
        for (var i = 0u; i < min(4u, HEAD_DIM - dim); i++) {
            out[at + dim + i] = result[i];
        }
        if (SPLIT && item % QUADS == 0u) {
            let stats = params.stats + 2u * (head * params.splits + workgroup.z);
            out[stats] = greatest[row];
            out[stats + 1u] = weight_sums[row];
        }
    }
}
