// Ternary products of several tokens in singles (singles.wgsl), without barriers: an invocation takes the codes
// of eight rows apart once for up to four vectors, which are tokens or the PLANES of one.
//
// GROUPED  whether every `segment.group` chunks of columns have a scale of their own

const WORKGROUP = 32u;
const TOKENS = select(1u, 4u, PLANES == 1u);

/// Sums of eight rows with four vectors, in the rows' units, and of the vectors alone.
struct TileSums {
    lo0: vec4<f32>, hi0: vec4<f32>,
    lo1: vec4<f32>, hi1: vec4<f32>,
    lo2: vec4<f32>, hi2: vec4<f32>,
    lo3: vec4<f32>, hi3: vec4<f32>,
    totals: vec4<f32>,
}

/// Results of eight rows, a token each.
struct TileValues {
    of0: Values,
    of1: Values,
    of2: Values,
    of3: Values,
}

fn add_word(sums: ptr<function, TileSums>, lo: u32, hi: u32, words: vec4<u32>) {
    let x0 = input_singles(words.x);
    let x1 = input_singles(words.y);
    let x2 = input_singles(words.z);
    let x3 = input_singles(words.w);
    let lo_row0 = row_singles(lo, ROW0);
    let lo_row1 = row_singles(lo, ROW1);
    let lo_row2 = row_singles(lo, ROW2);
    let lo_row3 = last_row_singles(lo);
    (*sums).lo0 += vec4(dot(lo_row0, x0), dot(lo_row1, x0), dot(lo_row2, x0), dot(lo_row3, x0));
    (*sums).lo1 += vec4(dot(lo_row0, x1), dot(lo_row1, x1), dot(lo_row2, x1), dot(lo_row3, x1));
    (*sums).lo2 += vec4(dot(lo_row0, x2), dot(lo_row1, x2), dot(lo_row2, x2), dot(lo_row3, x2));
    (*sums).lo3 += vec4(dot(lo_row0, x3), dot(lo_row1, x3), dot(lo_row2, x3), dot(lo_row3, x3));
    let hi_row0 = row_singles(hi, ROW0);
    let hi_row1 = row_singles(hi, ROW1);
    let hi_row2 = row_singles(hi, ROW2);
    let hi_row3 = last_row_singles(hi);
    (*sums).hi0 += vec4(dot(hi_row0, x0), dot(hi_row1, x0), dot(hi_row2, x0), dot(hi_row3, x0));
    (*sums).hi1 += vec4(dot(hi_row0, x1), dot(hi_row1, x1), dot(hi_row2, x1), dot(hi_row3, x1));
    (*sums).hi2 += vec4(dot(hi_row0, x2), dot(hi_row1, x2), dot(hi_row2, x2), dot(hi_row3, x2));
    (*sums).hi3 += vec4(dot(hi_row0, x3), dot(hi_row1, x3), dot(hi_row2, x3), dot(hi_row3, x3));
    if (GROUPED) {
        (*sums).totals += vec4(dot(WHOLE, x0), dot(WHOLE, x1), dot(WHOLE, x2), dot(WHOLE, x3));
    }
}

fn add_values(values: Values, lo: vec4<f32>, hi: vec4<f32>, total: f32, scales: Values) -> Values {
    return Values(
        values.lo + (lo * ROW_UNITS - total) * scales.lo, values.hi + (hi * ROW_UNITS - total) * scales.hi,
    );
}

/// Adds the sums so far, which have a scale in common, and begins new ones.
fn settle(values: ptr<function, TileValues>, sums: ptr<function, TileSums>, totals: vec4<f32>, scales: Values) {
    let s = *sums;
    if (PLANES == 3u) {
        let lo = ((s.lo0 * ROW_UNITS - totals.x) * 65536.0 + (s.lo1 * ROW_UNITS - totals.y) * 256.0)
            + (s.lo2 * ROW_UNITS - totals.z);
        let hi = ((s.hi0 * ROW_UNITS - totals.x) * 65536.0 + (s.hi1 * ROW_UNITS - totals.y) * 256.0)
            + (s.hi2 * ROW_UNITS - totals.z);
        (*values).of0 = Values((*values).of0.lo + lo * scales.lo, (*values).of0.hi + hi * scales.hi);
    } else {
        (*values).of0 = add_values((*values).of0, s.lo0, s.hi0, totals.x, scales);
        (*values).of1 = add_values((*values).of1, s.lo1, s.hi1, totals.y, scales);
        (*values).of2 = add_values((*values).of2, s.lo2, s.hi2, totals.z, scales);
        (*values).of3 = add_values((*values).of3, s.lo3, s.hi3, totals.w, scales);
    }
    *sums = TileSums();
}

/// The sums of whole vectors.
fn whole_totals(token: u32) -> vec4<f32> {
    if (PLANES == 3u) {
        return vec4(vec3<f32>(facts_of(token).totals), 0.0);
    }
    return vec4<f32>(vec4(
        facts_of(token).totals.x, facts_of(token + 1u).totals.x,
        facts_of(token + 2u).totals.x, facts_of(token + 3u).totals.x,
    ));
}

fn product(segment: Segment, octet: u32, token: u32) -> TileValues {
    var values: TileValues;
    var sums: TileSums;
    let place = octet_place(segment, octet);
    let chunks = params.chunks;
    let per_stream = chunks / STREAMS;
    var x_at = params.tokens + token * PLANES * chunks;
    var chunk = 0u;
    for (var stream = 0u; stream < STREAMS; stream++) {
        var at = place.first + stream * place.stride;
        for (var step = 0u; step < per_stream; step++) {
            let lo = weights[at];
            let hi = weights[at + 1u];
            let x0 = input_at(x_at);
            let x1 = input_at(x_at + chunks);
            let x2 = input_at(x_at + 2u * chunks);
            let x3 = input_at(x_at + 3u * chunks);
            add_word(&sums, lo.x, hi.x, vec4(x0.x, x1.x, x2.x, x3.x));
            add_word(&sums, lo.y, hi.y, vec4(x0.y, x1.y, x2.y, x3.y));
            add_word(&sums, lo.z, hi.z, vec4(x0.z, x1.z, x2.z, x3.z));
            add_word(&sums, lo.w, hi.w, vec4(x0.w, x1.w, x2.w, x3.w));
            at += 2u;
            x_at += 1u;
            chunk += 1u;
            if (GROUPED && chunk <= params.filled_chunks
                && (chunk % segment.group == 0u || chunk == params.filled_chunks)) {
                settle(&values, &sums, sums.totals, group_scales(segment, octet, chunk - 1u));
            }
        }
    }
    if (!GROUPED) {
        settle(&values, &sums, whole_totals(token), row_scales(segment, octet));
    }
    return values;
}

fn put_values(segment: Segment, octet: u32, token: u32, values: Values, ups: Values) {
    let unit = facts_of(token).unit;
    var results = Values(values.lo * unit, values.hi * unit);
    if (EPILOGUE >= 2u) {
        results = Values(activate(results.lo) * (ups.lo * unit), activate(results.hi) * (ups.hi * unit));
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
    var ups: TileValues;
    if (EPILOGUE >= 2u) {
        ups = product(params.segment[1], own, token);
    }
    put_values(segment, own, token, values.of0, ups.of0);
    if (PLANES == 1u) {
        put_values(segment, own, token + 1u, values.of1, ups.of1);
        put_values(segment, own, token + 2u, values.of2, ups.of2);
        put_values(segment, own, token + 3u, values.of3, ups.of3);
    }
}
