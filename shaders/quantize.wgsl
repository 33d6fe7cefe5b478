// The integer inputs of ternary linears: RMSNorm, then codes.
//
// PLANES 1: the quantiser of BitNet b1.58, `round(x · 127 / max|x|)`
// PLANES 3: 24-bit fixed point in three signed digits of eight bits, the highest first
//
// The root mean square cancels out of the codes, which therefore depend on the rounding of one product and one
// quotient only.

const FIXED_MAX = 8323072.0;
const LEAST = 1e-5;
const SMALLEST = 1.17549435e-38;

/// A `vec4` for each token (what one unit is worth, the sums of its planes), then `[tokens, planes, columns]`
/// bytes.
@group(0) @binding(3) var<storage, read_write> out: array<u32>;

var<workgroup> totals: array<vec4<i32>, WORKGROUP>;
var<workgroup> total_rows: array<vec4<i32>, ROOT>;

fn total(local: u32, value: vec4<i32>) -> vec4<i32> {
    totals[local] = value;
    workgroupBarrier();
    if (local < ROOT) {
        var row = totals[local * ROOT];
        for (var i = 1u; i < ROOT; i++) {
            row += totals[local * ROOT + i];
        }
        total_rows[local] = row;
    }
    workgroupBarrier();
    var all = total_rows[0];
    for (var i = 1u; i < ROOT; i++) {
        all += total_rows[i];
    }
    return all;
}

fn pack(bytes: vec4<i32>) -> u32 {
    let low = bitcast<vec4<u32>>(bytes) & vec4(0xffu);
    return low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u);
}

/// Four consecutive columns as integers.
fn integers(token: u32, column: u32, scale: f32) -> vec4<i32> {
    var values = vec4(0.0);
    for (var i = 0u; i < 4u; i++) {
        if (column + i < params.width) {
            values[i] = load(token, column + i) * norm_weight(column + i);
        }
    }
    return vec4<i32>(round(values * scale));
}

/// The lowest eight bits as a signed digit.
fn lowest_digit(value: vec4<i32>) -> vec4<i32> {
    return (value << vec4(24u)) >> vec4(24u);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let token = workgroup.x;
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

    let words = params.padded / 4u;
    let first = 4u * params.tokens + token * PLANES * words;
    var sums = vec4(0i);
    for (var word = local; word < words; word += WORKGROUP) {
        let values = integers(token, 4u * word, scale);
        if (PLANES == 1u) {
            out[first + word] = pack(values);
            sums.y += values.x + values.y + values.z + values.w;
        } else {
            let low = lowest_digit(values);
            let rest = (values - low) >> vec4(8u);
            let middle = lowest_digit(rest);
            let high = (rest - middle) >> vec4(8u);
            out[first + word] = pack(high);
            out[first + words + word] = pack(middle);
            out[first + 2u * words + word] = pack(low);
            sums.y += high.x + high.y + high.z + high.w;
            sums.z += middle.x + middle.y + middle.z + middle.w;
            sums.w += low.x + low.y + low.z + low.w;
        }
    }
    sums = total(local, sums);
    if (local == 0u) {
        out[4u * token] = bitcast<u32>(unit);
        out[4u * token + 1u] = bitcast<u32>(sums.y);
        out[4u * token + 2u] = bitcast<u32>(sums.z);
        out[4u * token + 3u] = bitcast<u32>(sums.w);
    }
}
