// Ternary products of several tokens in singles (singles.wgsl), without barriers: an invocation takes the codes
// of eight rows apart once for up to eight vectors, PLANES of which are a token.
//
// GROUPED  whether every `segment.group` chunks of columns have a scale of their own

const WORKGROUP = 32u;
const TOKENS = select(2u, 8u, PLANES == 1u);

/// Sums of eight rows with a vector, in the rows' units, and of the vector alone.
struct VectorSums {
    of_rows: Values,
    total: f32,
}

struct TileSums {
    v0: VectorSums, v1: VectorSums, v2: VectorSums, v3: VectorSums,
    v4: VectorSums, v5: VectorSums, v6: VectorSums, v7: VectorSums,
}

/// Results of eight rows, a token each.
struct TileValues {
    t0: Values, t1: Values, t2: Values, t3: Values,
    t4: Values, t5: Values, t6: Values, t7: Values,
}

fn add_vector(sums: VectorSums, rows: Rows, word: u32) -> VectorSums {
    let x = input_singles(word);
    var total = sums.total;
    if (GROUPED) {
        total += dot(WHOLE, x);
    }
    return VectorSums(add_products(sums.of_rows, rows, x), total);
}

/// Word `word` of a chunk of columns: of the codes at `at`, and of the vectors from `x_at` on.
fn add_word(sums: ptr<function, TileSums>, at: u32, x_at: u32, word: u32) {
    let stride = params.chunks;
    let rows = rows_of(weights[at][word], weights[at + 1u][word]);
    (*sums).v0 = add_vector((*sums).v0, rows, input_word(x_at, word));
    (*sums).v1 = add_vector((*sums).v1, rows, input_word(x_at + stride, word));
    (*sums).v2 = add_vector((*sums).v2, rows, input_word(x_at + 2u * stride, word));
    (*sums).v3 = add_vector((*sums).v3, rows, input_word(x_at + 3u * stride, word));
    (*sums).v4 = add_vector((*sums).v4, rows, input_word(x_at + 4u * stride, word));
    (*sums).v5 = add_vector((*sums).v5, rows, input_word(x_at + 5u * stride, word));
    if (PLANES == 1u) {
        (*sums).v6 = add_vector((*sums).v6, rows, input_word(x_at + 6u * stride, word));
        (*sums).v7 = add_vector((*sums).v7, rows, input_word(x_at + 7u * stride, word));
    }
}

/// Integer sums of weights and activations.
fn whole(sums: VectorSums) -> Values {
    return Values(sums.of_rows.lo * ROW_UNITS - sums.total, sums.of_rows.hi * ROW_UNITS - sums.total);
}

fn add_scaled(values: Values, sums: Values, scales: Values) -> Values {
    return Values(values.lo + sums.lo * scales.lo, values.hi + sums.hi * scales.hi);
}

/// One number of the digits of a token.
fn joined(high: VectorSums, middle: VectorSums, low: VectorSums) -> Values {
    let h = whole(high);
    let m = whole(middle);
    let l = whole(low);
    return Values((h.lo * 65536.0 + m.lo * 256.0) + l.lo, (h.hi * 65536.0 + m.hi * 256.0) + l.hi);
}

/// Adds the sums so far, which have a scale in common, and begins new ones.
fn settle(values: ptr<function, TileValues>, sums: ptr<function, TileSums>, scales: Values) {
    let s = *sums;
    if (PLANES == 3u) {
        (*values).t0 = add_scaled((*values).t0, joined(s.v0, s.v1, s.v2), scales);
        (*values).t1 = add_scaled((*values).t1, joined(s.v3, s.v4, s.v5), scales);
    } else {
        (*values).t0 = add_scaled((*values).t0, whole(s.v0), scales);
        (*values).t1 = add_scaled((*values).t1, whole(s.v1), scales);
        (*values).t2 = add_scaled((*values).t2, whole(s.v2), scales);
        (*values).t3 = add_scaled((*values).t3, whole(s.v3), scales);
        (*values).t4 = add_scaled((*values).t4, whole(s.v4), scales);
        (*values).t5 = add_scaled((*values).t5, whole(s.v5), scales);
        (*values).t6 = add_scaled((*values).t6, whole(s.v6), scales);
        (*values).t7 = add_scaled((*values).t7, whole(s.v7), scales);
    }
    *sums = TileSums();
}

/// The sums of whole vectors, which were made with them.
fn set_totals(sums: ptr<function, TileSums>, token: u32) {
    if (PLANES == 3u) {
        let first = vec3<f32>(facts_of(token).totals);
        let second = vec3<f32>(facts_of(token + 1u).totals);
        (*sums).v0.total = first.x;
        (*sums).v1.total = first.y;
        (*sums).v2.total = first.z;
        (*sums).v3.total = second.x;
        (*sums).v4.total = second.y;
        (*sums).v5.total = second.z;
        return;
    }
    (*sums).v0.total = f32(facts_of(token).totals.x);
    (*sums).v1.total = f32(facts_of(token + 1u).totals.x);
    (*sums).v2.total = f32(facts_of(token + 2u).totals.x);
    (*sums).v3.total = f32(facts_of(token + 3u).totals.x);
    (*sums).v4.total = f32(facts_of(token + 4u).totals.x);
    (*sums).v5.total = f32(facts_of(token + 5u).totals.x);
    (*sums).v6.total = f32(facts_of(token + 6u).totals.x);
    (*sums).v7.total = f32(facts_of(token + 7u).totals.x);
}

fn product(segment: Segment, octet: u32, token: u32) -> TileValues {
    var values = TileValues();
    var sums = TileSums();
    let place = octet_place(segment, octet);
    let per_stream = params.chunks / STREAMS;
    var x_at = params.tokens + token * PLANES * params.chunks;
    var chunk = 0u;
    for (var stream = 0u; stream < STREAMS; stream++) {
        var at = place.first + stream * place.stride;
        for (var step = 0u; step < per_stream; step++) {
            // Not unrolled: the whole loop is to fit the instruction cache of a processor that plays the GPU.
            for (var word = 0u; word < 4u; word++) {
                add_word(&sums, at, x_at, word);
            }
            at += 2u;
            x_at += 1u;
            chunk += 1u;
            if (GROUPED && chunk <= params.filled_chunks
                && (chunk % segment.group == 0u || chunk == params.filled_chunks)) {
                settle(&values, &sums, group_scales(segment, octet, chunk - 1u));
            }
        }
    }
    if (!GROUPED) {
        set_totals(&sums, token);
        settle(&values, &sums, Values(vec4(1.0), vec4(1.0)));
    }
    let scales = row_scales(segment, octet, GROUPED);
    values.t0 = finished(values.t0, scales, facts_of(token).unit);
    values.t1 = finished(values.t1, scales, facts_of(token + 1u).unit);
    if (PLANES == 1u) {
        values.t2 = finished(values.t2, scales, facts_of(token + 2u).unit);
        values.t3 = finished(values.t3, scales, facts_of(token + 3u).unit);
        values.t4 = finished(values.t4, scales, facts_of(token + 4u).unit);
        values.t5 = finished(values.t5, scales, facts_of(token + 5u).unit);
        values.t6 = finished(values.t6, scales, facts_of(token + 6u).unit);
        values.t7 = finished(values.t7, scales, facts_of(token + 7u).unit);
    }
    return values;
}

fn put_values(segment: Segment, octet: u32, token: u32, values: Values, ups: Values) {
    var results = values;
    if (EPILOGUE >= 2u) {
        results = Values(activate(values.lo) * ups.lo, activate(values.hi) * ups.hi);
    }
    put_octet(segment, octet, token, results);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(global_invocation_id) id: vec3<u32>) {
    let octet = id.x;
    if (octet >= params.octets) {
        return;
    }
    let segment = params.segment[segment_index(octet)];
    let own = octet - segment.first_octet;
    let token = workgroup.y * TOKENS;
    let values = product(segment, own, token);
    var ups = TileValues();
    if (EPILOGUE >= 2u) {
        ups = product(params.segment[1], own, token);
    }
    put_values(segment, own, token, values.t0, ups.t0);
    put_values(segment, own, token + 1u, values.t1, ups.t1);
    if (PLANES == 1u) {
        put_values(segment, own, token + 2u, values.t2, ups.t2);
        put_values(segment, own, token + 3u, values.t3, ups.t3);
        put_values(segment, own, token + 4u, values.t4, ups.t4);
        put_values(segment, own, token + 5u, values.t5, ups.t5);
        put_values(segment, own, token + 6u, values.t6, ups.t6);
        put_values(segment, own, token + 7u, values.t7, ups.t7);
    }
}
