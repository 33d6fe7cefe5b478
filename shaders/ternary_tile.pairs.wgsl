// Ternary products of several tokens in singles (singles.wgsl), without workgroup memory: an invocation takes the
// codes of eight rows apart once for PAIRS pairs of vectors (a token is PLANES of them).
//
// The vectors of a pair are one: a single holds the second's byte and, 4096 times smaller, the first's. Products
// with eight columns of codes are exact in it (2 · 128 · 8 < 4096 / 2, and 2¹² · 2¹² fit 24 bits) and come apart
// again into a whole number and a fraction. Eight columns a step keep the loop small: a processor that plays the
// GPU decodes its instructions once only where they fit a small cache.
//
// GROUPED  whether every `segment.group` chunks of columns have a scale of their own

@group(0) @binding(1) var<storage, read> codes: array<array<vec2<u32>, 2u * RUN>>;
@group(0) @binding(2) var<storage, read> inputs: array<array<vec2<u32>, 2u * CHUNKS>>;

const WORKGROUP = 32u;
/// Of the first of a pair, by columns.
const FIRST_UNITS = COLUMN_UNITS / 4096.0;

/// A word of columns of eight rows twice, and of a pair.
struct PairInput {
    word0: vec4<f32>,
    word1: vec4<f32>,
    /// The sum of all columns, and half a unit of the second so that fractions are not negative.
    total: f32,
}

/// Sums of eight rows with the vectors of a pair; of the first in 4096ths, with half a unit for every step.
struct PairSums {
    first: Values,
    second: Values,
}

fn pair_singles(first: u32, second: u32) -> vec4<f32> {
    return byte_tops(first) * FIRST_UNITS + byte_tops(second) * COLUMN_UNITS;
}

fn pair_input(first: vec2<u32>, second: vec2<u32>) -> PairInput {
    let word0 = pair_singles(first.x, second.x);
    let word1 = pair_singles(first.y, second.y);
    return PairInput(word0, word1, dot(word0, WHOLE) + dot(word1, WHOLE) - 0.5);
}

fn add_pair(sums: PairSums, rows0: Rows, rows1: Rows, x: PairInput) -> PairSums {
    let products = add_products(add_products(Values(), rows0, x.word0), rows1, x.word1);
    let lo = products.lo * ROW_UNITS - x.total;
    let hi = products.hi * ROW_UNITS - x.total;
    let second = Values(floor(lo), floor(hi));
    return PairSums(
        Values(sums.first.lo + (lo - second.lo), sums.first.hi + (hi - second.hi)),
        Values(sums.second.lo + second.lo, sums.second.hi + second.hi),
    );
}

/// Sums with the pairs of an invocation.
struct TileSums {
    p0: PairSums, p1: PairSums, p2: PairSums, p3: PairSums,
}

/// Results of eight rows, a token each.
struct TileValues {
    t0: Values, t1: Values, t2: Values, t3: Values,
    t4: Values, t5: Values, t6: Values, t7: Values,
}

/// The first vector of a pair of the tile that begins with token `token`.
fn first_of_pair(token: u32, pair: u32) -> u32 {
    return first_vector() + token * PLANES + select(min(pair, 2u), 2u * pair, PLANES == 1u);
}

/// How far behind it the second one is: the next token, or the same digit of it.
const TO_SECOND = PLANES;

/// Whole sums of the first vectors of `count` steps.
fn first_whole(sums: PairSums, steps: u32) -> Values {
    let half = 2048.0 * f32(steps);
    return Values(sums.first.lo * 4096.0 - half, sums.first.hi * 4096.0 - half);
}

fn joined(high: Values, middle: Values, low: Values) -> Values {
    return Values(
        (high.lo * 65536.0 + middle.lo * 256.0) + low.lo,
        (high.hi * 65536.0 + middle.hi * 256.0) + low.hi,
    );
}

fn pair_sums(sums: TileSums, index: u32) -> PairSums {
    var found = sums.p0;
    if (index == 1u) {
        found = sums.p1;
    }
    if (index == 2u) {
        found = sums.p2;
    }
    if (index == 3u) {
        found = sums.p3;
    }
    return found;
}

/// Adds the sums of `steps` steps, which have a scale in common.
fn settled(values: TileValues, sums: TileSums, steps: u32, lane: u32, scales: Values) -> TileValues {
    var all = values;
    if (PLANES == 3u) {
        let high = pair_sums(sums, lane);
        let middle = pair_sums(sums, lane ^ 1u);
        let low = pair_sums(sums, lane ^ 2u);
        let first = joined(first_whole(high, steps), first_whole(middle, steps), first_whole(low, steps));
        all.t0 = add_scaled(all.t0, first, scales);
        all.t1 = add_scaled(all.t1, joined(high.second, middle.second, low.second), scales);
        return all;
    }
    all.t0 = add_scaled(all.t0, first_whole(sums.p0, steps), scales);
    all.t1 = add_scaled(all.t1, sums.p0.second, scales);
    all.t2 = add_scaled(all.t2, first_whole(sums.p1, steps), scales);
    all.t3 = add_scaled(all.t3, sums.p1.second, scales);
    if (SHARED) {
        all.t4 = add_scaled(all.t4, first_whole(sums.p2, steps), scales);
        all.t5 = add_scaled(all.t5, sums.p2.second, scales);
        all.t6 = add_scaled(all.t6, first_whole(sums.p3, steps), scales);
        all.t7 = add_scaled(all.t7, sums.p3.second, scales);
    }
    return all;
}

fn product(segment: Segment, octet: u32, token: u32, lane: u32) -> TileValues {
    var values = TileValues();
    var sums = TileSums();
    let place = octet_place(segment, octet);
    // Of the pairs that an invocation loads; those that it does not load cost nothing.
    let pair0 = &inputs[first_of_pair(token, lane)];
    let pair1 = &inputs[first_of_pair(token, 1u)];
    let pair2 = &inputs[first_of_pair(token, 2u)];
    let other0 = &inputs[first_of_pair(token, lane) + TO_SECOND];
    let other1 = &inputs[first_of_pair(token, 1u) + TO_SECOND];
    let other2 = &inputs[first_of_pair(token, 2u) + TO_SECOND];
    var steps = 0u;
    for (var stream = 0u; stream < STREAMS; stream++) {
        let run = &codes[place.first + stream * place.stride];
        for (var step = 0u; step < RUN; step++) {
            let at = stream * RUN + step;
            let lo = (*run)[step + 2u * (step / 2u)];
            let hi = (*run)[step + 2u * (step / 2u) + 2u];
            let rows0 = rows_of(lo.x, hi.x);
            let rows1 = rows_of(lo.y, hi.y);
            let own = pair_input((*pair0)[at], (*other0)[at]);
            sums.p0 = add_pair(sums.p0, rows0, rows1, own);
            if (SHARED) {
                sums.p1 = add_pair(sums.p1, rows0, rows1, across_x(own));
                sums.p2 = add_pair(sums.p2, rows0, rows1, across_y(own));
                sums.p3 = add_pair(sums.p3, rows0, rows1, across_both(own));
            } else {
                sums.p1 = add_pair(sums.p1, rows0, rows1, pair_input((*pair1)[at], (*other1)[at]));
                if (PLANES == 3u) {
                    sums.p2 = add_pair(sums.p2, rows0, rows1, pair_input((*pair2)[at], (*other2)[at]));
                }
            }
            steps += 1u;
            if (GROUPED && at % 2u == 1u && ends_group(segment, at / 2u + 1u)) {
                values = settled(values, sums, steps, lane, group_scales(segment, octet, at / 2u));
                sums = TileSums();
                steps = 0u;
            }
        }
    }
    if (!GROUPED) {
        values = settled(values, sums, steps, lane, Values(vec4(1.0), vec4(1.0)));
    }
    return values;
}

/// The token of the tile that a result is of: what lanes of a quad share is in an order of its own in each.
fn token_of(result: u32, lane: u32) -> u32 {
    if (PLANES == 3u) {
        return result;
    }
    return result ^ (2u * lane);
}

fn put_result(segment: Segment, octet: u32, token: u32, values: Values, ups: Values) {
    if (token >= params.tokens) {
        return;
    }
    let scales = row_scales(segment, octet, GROUPED);
    let unit = facts_of(token).unit;
    var results = finished(values, scales, unit);
    if (EPILOGUE >= 2u) {
        let up = finished(ups, row_scales(params.segment[1], octet, GROUPED), unit);
        results = Values(activate(results.lo) * up.lo, activate(results.hi) * up.hi);
    }
    put_octet(segment, octet, token, results);
}

/// The rows of `octet` and the tile of tokens that begins with `token`; `lane` is the invocation's in its quad.
fn run(octet: u32, token: u32, lane: u32) {
    // Invocations without rows compute the last ones too: quads are whole.
    let some_octet = min(octet, params.octets - 1u);
    let segment = params.segment[segment_index(some_octet)];
    let own = some_octet - segment.first_octet;
    let values = product(segment, own, token, lane);
    var ups = TileValues();
    if (EPILOGUE >= 2u) {
        ups = product(params.segment[1], own, token, lane);
    }
    if (octet >= params.octets) {
        return;
    }
    put_result(segment, own, token + token_of(0u, lane), values.t0, ups.t0);
    put_result(segment, own, token + token_of(1u, lane), values.t1, ups.t1);
    if (PLANES == 1u) {
        put_result(segment, own, token + token_of(2u, lane), values.t2, ups.t2);
        put_result(segment, own, token + token_of(3u, lane), values.t3, ups.t3);
        if (SHARED) {
            put_result(segment, own, token + token_of(4u, lane), values.t4, ups.t4);
            put_result(segment, own, token + token_of(5u, lane), values.t5, ups.t5);
            put_result(segment, own, token + token_of(6u, lane), values.t6, ups.t6);
            put_result(segment, own, token + token_of(7u, lane), values.t7, ups.t7);
        }
    }
}
