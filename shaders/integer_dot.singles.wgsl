// Products of codes with bytes as singles (singles.wgsl).

/// The products of eight rows with up to three vectors of digits, in the rows' units.
struct Partial {
    lo0: vec4<f32>, hi0: vec4<f32>,
    lo1: vec4<f32>, hi1: vec4<f32>,
    lo2: vec4<f32>, hi2: vec4<f32>,
}

fn chunk_sum(x: vec4<u32>) -> i32 {
    return i32(
        dot(input_singles(x.x), WHOLE) + dot(input_singles(x.y), WHOLE)
            + dot(input_singles(x.z), WHOLE) + dot(input_singles(x.w), WHOLE),
    );
}

fn add_word(partial: ptr<function, Partial>, lo: u32, hi: u32, high: u32, middle: u32, low: u32) {
    let lo_row0 = row_singles(lo, ROW0);
    let lo_row1 = row_singles(lo, ROW1);
    let lo_row2 = row_singles(lo, ROW2);
    let lo_row3 = last_row_singles(lo);
    let hi_row0 = row_singles(hi, ROW0);
    let hi_row1 = row_singles(hi, ROW1);
    let hi_row2 = row_singles(hi, ROW2);
    let hi_row3 = last_row_singles(hi);
    let x0 = input_singles(high);
    (*partial).lo0 += vec4(dot(lo_row0, x0), dot(lo_row1, x0), dot(lo_row2, x0), dot(lo_row3, x0));
    (*partial).hi0 += vec4(dot(hi_row0, x0), dot(hi_row1, x0), dot(hi_row2, x0), dot(hi_row3, x0));
    if (PLANES == 3u) {
        let x1 = input_singles(middle);
        let x2 = input_singles(low);
        (*partial).lo1 += vec4(dot(lo_row0, x1), dot(lo_row1, x1), dot(lo_row2, x1), dot(lo_row3, x1));
        (*partial).hi1 += vec4(dot(hi_row0, x1), dot(hi_row1, x1), dot(hi_row2, x1), dot(hi_row3, x1));
        (*partial).lo2 += vec4(dot(lo_row0, x2), dot(lo_row1, x2), dot(lo_row2, x2), dot(lo_row3, x2));
        (*partial).hi2 += vec4(dot(hi_row0, x2), dot(hi_row1, x2), dot(hi_row2, x2), dot(hi_row3, x2));
    }
}

fn add_chunk(partial: ptr<function, Partial>, lo: vec4<u32>, hi: vec4<u32>, x: Planes) {
    add_word(partial, lo.x, hi.x, x.high.x, x.middle.x, x.low.x);
    add_word(partial, lo.y, hi.y, x.high.y, x.middle.y, x.low.y);
    add_word(partial, lo.z, hi.z, x.high.z, x.middle.z, x.low.z);
    add_word(partial, lo.w, hi.w, x.high.w, x.middle.w, x.low.w);
}

fn sums_of(partial: Partial) -> Sums {
    return Sums(
        vec4<i32>(partial.lo0 * ROW_UNITS), vec4<i32>(partial.hi0 * ROW_UNITS),
        vec4<i32>(partial.lo1 * ROW_UNITS), vec4<i32>(partial.hi1 * ROW_UNITS),
        vec4<i32>(partial.lo2 * ROW_UNITS), vec4<i32>(partial.hi2 * ROW_UNITS),
    );
}
