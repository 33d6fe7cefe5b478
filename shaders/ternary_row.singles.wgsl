// Ternary products of one token in singles (singles.wgsl): each invocation computes eight rows by itself.
//
// WORKGROUP  invocations
// GROUPED    whether every `segment.group` chunks of columns have a scale of their own

@group(0) @binding(1) var<storage, read> codes: array<array<vec4<u32>, RUN>>;

/// Sums of eight rows with the digits of a token, in the rows' units, and of the digits alone.
struct DigitSums {
    high: Values, middle: Values, low: Values,
    totals: vec3<f32>,
}

fn add_word(sums: ptr<function, DigitSums>, lo: u32, hi: u32, high: u32, middle: u32, low: u32) {
    let rows = rows_of(lo, hi);
    let x = input_singles(high);
    (*sums).high = add_products((*sums).high, rows, x);
    if (GROUPED) {
        (*sums).totals.x += dot(x, WHOLE);
    }
    if (PLANES == 3u) {
        let y = input_singles(middle);
        let z = input_singles(low);
        (*sums).middle = add_products((*sums).middle, rows, y);
        (*sums).low = add_products((*sums).low, rows, z);
        if (GROUPED) {
            (*sums).totals += vec3(0.0, dot(y, WHOLE), dot(z, WHOLE));
        }
    }
}

fn whole_sums(sums: Values, total: f32) -> Values {
    return Values(sums.lo * ROW_UNITS - total, sums.hi * ROW_UNITS - total);
}

/// One number of the digits' sums.
fn joined(sums: DigitSums, totals: vec3<f32>) -> Values {
    let high = whole_sums(sums.high, totals.x);
    if (PLANES == 1u) {
        return high;
    }
    let middle = whole_sums(sums.middle, totals.y);
    let low = whole_sums(sums.low, totals.z);
    return Values(
        (high.lo * 65536.0 + middle.lo * 256.0) + low.lo,
        (high.hi * 65536.0 + middle.hi * 256.0) + low.hi,
    );
}

fn product(segment: Segment, octet: u32) -> Values {
    var values = Values();
    var sums = DigitSums();
    let place = octet_place(segment, octet);
    var chunk = 0u;
    for (var stream = 0u; stream < STREAMS; stream++) {
        let run = &codes[place.first + stream * place.stride];
        for (var step = 0u; step < RUN / 2u; step++) {
            let x = planes_at(chunk);
            let lo = (*run)[2u * step];
            let hi = (*run)[2u * step + 1u];
            add_word(&sums, lo.x, hi.x, x.high.x, x.middle.x, x.low.x);
            add_word(&sums, lo.y, hi.y, x.high.y, x.middle.y, x.low.y);
            add_word(&sums, lo.z, hi.z, x.high.z, x.middle.z, x.low.z);
            add_word(&sums, lo.w, hi.w, x.high.w, x.middle.w, x.low.w);
            chunk += 1u;
            if (GROUPED && ends_group(segment, chunk)) {
                values = add_scaled(values, joined(sums, sums.totals), group_scales(segment, octet, chunk - 1u));
                sums = DigitSums();
            }
        }
    }
    let facts = facts_of(0u);
    if (!GROUPED) {
        values = joined(sums, vec3<f32>(facts.totals));
    }
    return finished(values, row_scales(segment, octet, GROUPED), facts.unit);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    prepare_input(local);
    let octet = id.x;
    if (octet >= params.octets) {
        return;
    }
    let segment = params.segment[segment_index(octet)];
    let own = octet - segment.first_octet;
    var values = product(segment, own);
    if (EPILOGUE >= 2u) {
        let up = product(params.segment[1], own);
        values = Values(activate(values.lo) * up.lo, activate(values.hi) * up.hi);
    }
    put_octet(segment, own, 0u, values);
}
