// Products of codes with bytes as singles (singles.wgsl).

/// The products of eight rows with up to three vectors of digits, in the rows' units.
struct Partial {
    high: Values,
    middle: Values,
    low: Values,
}

fn chunk_sum(x: vec4<u32>) -> i32 {
    return i32(
        dot(input_singles(x.x), WHOLE) + dot(input_singles(x.y), WHOLE)
            + dot(input_singles(x.z), WHOLE) + dot(input_singles(x.w), WHOLE),
    );
}

fn add_word(partial: ptr<function, Partial>, lo: u32, hi: u32, high: u32, middle: u32, low: u32) {
    let rows = rows_of(lo, hi);
    (*partial).high = add_products((*partial).high, rows, input_singles(high));
    if (PLANES == 3u) {
        (*partial).middle = add_products((*partial).middle, rows, input_singles(middle));
        (*partial).low = add_products((*partial).low, rows, input_singles(low));
    }
}

fn add_chunk(partial: ptr<function, Partial>, lo: vec4<u32>, hi: vec4<u32>, x: Planes) {
    add_word(partial, lo.x, hi.x, x.high.x, x.middle.x, x.low.x);
    add_word(partial, lo.y, hi.y, x.high.y, x.middle.y, x.low.y);
    add_word(partial, lo.z, hi.z, x.high.z, x.middle.z, x.low.z);
    add_word(partial, lo.w, hi.w, x.high.w, x.middle.w, x.low.w);
}

fn row_integers(values: vec4<f32>) -> vec4<i32> {
    return vec4<i32>(values * ROW_UNITS);
}

fn sums_of(partial: Partial) -> Sums {
    return Sums(
        row_integers(partial.high.lo), row_integers(partial.high.hi),
        row_integers(partial.middle.lo), row_integers(partial.middle.hi),
        row_integers(partial.low.lo), row_integers(partial.low.hi),
    );
}
