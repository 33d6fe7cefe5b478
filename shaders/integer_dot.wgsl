// Products of codes with bytes, four in one instruction where the device has it.

/// The integer products of eight rows with up to three vectors of digits.
struct Partial {
    lo0: vec4<i32>, hi0: vec4<i32>,
    lo1: vec4<i32>, hi1: vec4<i32>,
    lo2: vec4<i32>, hi2: vec4<i32>,
}

/// Codes of 16 columns, a `vec4` a row.
struct Codes {
    row0: vec4<u32>, row1: vec4<u32>, row2: vec4<u32>, row3: vec4<u32>,
}

fn decode(packed: vec4<u32>) -> Codes {
    let mask = vec4(DIGITS);
    return Codes(
        packed & mask, (packed >> vec4(2u)) & mask, (packed >> vec4(4u)) & mask, (packed >> vec4(6u)) & mask,
    );
}

fn integer_dot(codes: vec4<u32>, x: vec4<u32>) -> i32 {
    return dot4I8Packed(codes.x, x.x) + dot4I8Packed(codes.y, x.y) + dot4I8Packed(codes.z, x.z)
        + dot4I8Packed(codes.w, x.w);
}

fn four_dots(codes: Codes, x: vec4<u32>) -> vec4<i32> {
    return vec4(
        integer_dot(codes.row0, x), integer_dot(codes.row1, x),
        integer_dot(codes.row2, x), integer_dot(codes.row3, x),
    );
}

fn chunk_sum(x: vec4<u32>) -> i32 {
    return integer_dot(vec4(0x01010101u), x);
}

fn add_chunk(partial: ptr<function, Partial>, chunk: ChunkCodes, x: Planes) {
    let lo_codes = decode(chunk.lo);
    let hi_codes = decode(chunk.hi);
    (*partial).lo0 += four_dots(lo_codes, x.high);
    (*partial).hi0 += four_dots(hi_codes, x.high);
    if (PLANES == 3u) {
        (*partial).lo1 += four_dots(lo_codes, x.middle);
        (*partial).hi1 += four_dots(hi_codes, x.middle);
        (*partial).lo2 += four_dots(lo_codes, x.low);
        (*partial).hi2 += four_dots(hi_codes, x.low);
    }
}

fn sums_of(partial: Partial) -> Sums {
    return Sums(partial.lo0, partial.hi0, partial.lo1, partial.hi1, partial.lo2, partial.hi2);
}
