// The integer inputs of ternary linears: RMSNorm, then codes. Where they are put (`put_facts`, `put_chunk`) is another file's
// matter.
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

fn total(local: u32, value: vec4<i32>) -> vec4<i32> {
    totals[local] = value;
    workgroupBarrier();
    if (local < ROOT) {
        var sum = totals[local * PER_ROOT];
        for (var i = 1u; i < PER_ROOT; i++) {
            sum += totals[local * PER_ROOT + i];
        }
        total_sums[local] = sum;
    }
    workgroupBarrier();
    var all = total_sums[0];
    for (var i = 1u; i < ROOT; i++) {
        all += total_sums[i];
    }
    return all;
}

fn pack(bytes: vec4<i32>) -> u32 {
    let low = bitcast<vec4<u32>>(bytes) & vec4(0xffu);
    return dot(low, vec4(1u, 0x100u, 0x10000u, 0x1000000u));
}

/// Four consecutive columns as integers.
fn integers(token: u32, column: u32, scale: f32) -> vec4<i32> {
    var values = vec4(0.0);
    for (var i = 0u; i < 4u; i++) {
        if (column + i < preparation.width) {
            values[i] = load(token, column + i) * norm_weight(column + i);
        }
    }
    return vec4<i32>(round(values * scale));
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

    let chunks = preparation.padded / 16u;
    var sums = vec4(0i);
    for (var chunk = local; chunk < chunks; chunk += WORKGROUP) {
        var high = vec4(0u);
        var middle = vec4(0u);
        var low = vec4(0u);
        for (var word = 0u; word < 4u; word++) {
            let digits = digits_of(integers(token, 16u * chunk + 4u * word, scale));
            high[word] = pack(digits.high);
            sums.y += digits.high.x + digits.high.y + digits.high.z + digits.high.w;
            if (PLANES == 3u) {
                middle[word] = pack(digits.middle);
                low[word] = pack(digits.low);
                sums.z += digits.middle.x + digits.middle.y + digits.middle.z + digits.middle.w;
                sums.w += digits.low.x + digits.low.y + digits.low.z + digits.low.w;
            }
        }
        put_chunk(token, 0u, chunk, high);
        if (PLANES == 3u) {
            put_chunk(token, 1u, chunk, middle);
            put_chunk(token, 2u, chunk, low);
        }
    }
    sums = total(local, sums);
    if (local == 0u) {
        put_facts(token, bitcast<vec4<u32>>(vec4(bitcast<i32>(unit), sums.y, sums.z, sums.w)));
    }
}
