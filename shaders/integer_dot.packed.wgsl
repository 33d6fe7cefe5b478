// Four products of bytes in one instruction, where the device has it.

fn integer_dot(codes: vec4<u32>, x: vec4<u32>) -> i32 {
    return dot4I8Packed(codes.x, x.x) + dot4I8Packed(codes.y, x.y) + dot4I8Packed(codes.z, x.z)
        + dot4I8Packed(codes.w, x.w);
}
