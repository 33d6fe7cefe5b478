// The integer inputs of ternary linears: RMSNorm, then codes. Where they are put (`put_facts`, `put_chunk`) is another
// file's matter.
//
// PLANES 1: the quantiser of BitNet b1.58, `round(x · 127 / max|x|)`
// PLANES 3: 24-bit fixed point in three signed digits of eight bits, the highest first
//
// The root mean square cancels out of the codes, which therefore depend on the rounding of one product and one
// quotient only.

const FIXED_MAX = 8323072.0;
const LEAST = 1e-5;
const SMALLEST = 1.17549435e-38;

var<workgroup> totals: array<vec4<i32>, WORKGROUP>;
var<workgroup> total_sums: array<vec4<i32>, ROOT>;

/// The sum of all; only the first invocation's is whole.
fn total(local: u32, value: vec4<i32>) -> vec4<i32> {
    totals[local] = value;
    workgroupBarrier();
    var sum = vec4(0i);
    if (local < ROOT) {
        for (var i = 0u; i < PER_ROOT; i++) {
            sum += totals[local * PER_ROOT + i];
        }
        total_sums[local] = sum;
    }
    workgroupBarrier();
    if (local == 0u) {
        for (var i = 1u; i < ROOT; i++) {
            sum += total_sums[i];
        }
    }
    return sum;
}

fn pack(bytes: vec4<i32>) -> u32 {
    let low = bitcast<vec4<u32>>(bytes) & vec4(0xffu);
    return dot(low, vec4(1u, 0x100u, 0x10000u, 0x1000000u));
}

/// The lowest eight bits as a signed digit.
fn lowest_digit(value: vec4<i32>) -> vec4<i32> {
    return (value << vec4(24u)) >> vec4(24u);
}

/// Digits of four columns, the highest in `x`.
struct Digits {
    high: vec4<i32>,
    middle: vec4<i32>,
    low: vec4<i32>,
}

fn digits_of(values: vec4<i32>) -> Digits {
    if (PLANES == 1u) {
        return Digits(values, vec4(0i), vec4(0i));
    }
    let low = lowest_digit(values);
    let rest = (values - low) >> vec4(8u);
    let middle = lowest_digit(rest);
    return Digits((rest - middle) >> vec4(8u), middle, low);
}

/// A word of each plane, and the sums of their columns.
struct Words {
    high: u32,
    middle: u32,
    low: u32,
    sums: vec4<i32>,
}

fn words_of(token: u32, column: u32, scale: f32) -> Words {
    var values = vec4(0i);
    if (column < WIDTH) {
        values = vec4<i32>(round(load_quad(token, column) * norm_quad(column) * scale));
    }
    let digits = digits_of(values);
    let sums = vec4(sum_of(digits.high), sum_of(digits.middle), sum_of(digits.low), 0i);
    return Words(pack(digits.high), pack(digits.middle), pack(digits.low), sums);
}

fn sum_of(values: vec4<i32>) -> i32 {
    return values.x + values.y + values.z + values.w;
}

/// Makes the input of one token: a `vec4` of what one unit is worth and the sums of its planes, and the planes
/// in chunks of 16 columns.
fn quantize(token: u32, local: u32) {
    let measured = measure(token, local);
    let inverse = inverse_rms(measured.x);
    let greatest = measured.y;
    // Codes are of values before the root mean square divides them; `unit` takes it in again.
    var scale = FIXED_MAX / max(greatest, SMALLEST * FIXED_MAX);
    var unit = max(greatest, SMALLEST * FIXED_MAX) * inverse / FIXED_MAX;
    if (PLANES == 1u) {
        let bound = max(greatest, LEAST / inverse);
        scale = 127.0 / bound;
        unit = bound * inverse / 127.0;
    }

    var sums = vec4(0i);
    for (var chunk = local; chunk < preparation.padded / 16u; chunk += WORKGROUP) {
        let words0 = words_of(token, 16u * chunk, scale);
        let words1 = words_of(token, 16u * chunk + 4u, scale);
        let words2 = words_of(token, 16u * chunk + 8u, scale);
        let words3 = words_of(token, 16u * chunk + 12u, scale);
        put_chunk(token, 0u, chunk, vec4(words0.high, words1.high, words2.high, words3.high));
        if (PLANES == 3u) {
            put_chunk(token, 1u, chunk, vec4(words0.middle, words1.middle, words2.middle, words3.middle));
            put_chunk(token, 2u, chunk, vec4(words0.low, words1.low, words2.low, words3.low));
        }
        sums += words0.sums + words1.sums + words2.sums + words3.sums;
    }
    sums = total(local, sums);
    if (local == 0u) {
        put_facts(token, bitcast<vec4<u32>>(vec4(bitcast<i32>(unit), sums.x, sums.y, sums.z)));
    }
}
