// Products of bytes, one by one: for devices that emulate the packed instruction slowly, or lack it.

fn bytes_at(packed: vec4<u32>, shift: u32) -> vec4<i32> {
    return bitcast<vec4<i32>>(packed << vec4(24u - shift)) >> vec4(24u);
}

fn integer_dot(codes: vec4<u32>, x: vec4<u32>) -> i32 {
    let sums = bytes_at(codes, 0u) * bytes_at(x, 0u) + bytes_at(codes, 8u) * bytes_at(x, 8u)
        + bytes_at(codes, 16u) * bytes_at(x, 16u) + bytes_at(codes, 24u) * bytes_at(x, 24u);
    return sums.x + sums.y + sums.z + sums.w;
}
