// The product of eight rows where every `segment.group` chunks of columns have a scale of their own: the
// integer sum of a chunk meets its scale at once.

/// `Σ (code − 1) · x` of four rows, `sum` being `Σ x`.
fn signed_lo(codes: Codes, x: vec4<u32>, sum: i32) -> vec4<i32> {
    return dot_lo(codes, x) - sum;
}

fn signed_hi(codes: Codes, x: vec4<u32>, sum: i32) -> vec4<i32> {
    return dot_hi(codes, x) - sum;
}

fn product(segment: Segment, octet: u32, vector: u32, team: Team) -> Values {
    let ones = vec4(0x01010101u);
    var values: Values;
    let place = octet_place(segment, octet);
    let first = first_vector(vector);
    let chunks = params.chunks;
    let per_stream = chunks / STREAMS;
    // Scales of eight rows lie side by side, group after group.
    let groups = (params.filled_chunks + segment.group - 1u) / segment.group;
    let scales = segment.scales + 2u * octet * groups;
    var stream_start = place.first;
    var step = team.lane;
    for (var chunk = team.lane; chunk < params.filled_chunks; chunk += team.lanes) {
        while (step >= per_stream) {
            step -= per_stream;
            stream_start += place.stride;
        }
        let codes = decode(stream_start + 2u * step);
        step += team.lanes;
        let at = scales + 2u * (chunk / segment.group);
        let scale_lo = bitcast<vec4<f32>>(weights[at]);
        let scale_hi = bitcast<vec4<f32>>(weights[at + 1u]);

        let x0 = input_at(first + chunk);
        let sum0 = integer_dot(ones, x0);
        var lo0 = signed_lo(codes, x0, sum0);
        var hi0 = signed_hi(codes, x0, sum0);
        if (PLANES == 3u) {
            // Sixteen columns of three digits fit 32 bits.
            let x1 = input_at(first + chunks + chunk);
            let x2 = input_at(first + 2u * chunks + chunk);
            let sum1 = integer_dot(ones, x1);
            let sum2 = integer_dot(ones, x2);
            lo0 = lo0 * 65536 + signed_lo(codes, x1, sum1) * 256 + signed_lo(codes, x2, sum2);
            hi0 = hi0 * 65536 + signed_hi(codes, x1, sum1) * 256 + signed_hi(codes, x2, sum2);
        }
        values.lo0 += vec4<f32>(lo0) * scale_lo;
        values.hi0 += vec4<f32>(hi0) * scale_hi;
        if (PLANES == 1u && VECTORS > 1u) {
            let x1 = input_at(first + chunks + chunk);
            let sum1 = integer_dot(ones, x1);
            values.lo1 += vec4<f32>(signed_lo(codes, x1, sum1)) * scale_lo;
            values.hi1 += vec4<f32>(signed_hi(codes, x1, sum1)) * scale_hi;
        }
        if (PLANES == 1u && VECTORS > 2u) {
            let x2 = input_at(first + 2u * chunks + chunk);
            let sum2 = integer_dot(ones, x2);
            values.lo2 += vec4<f32>(signed_lo(codes, x2, sum2)) * scale_lo;
            values.hi2 += vec4<f32>(signed_hi(codes, x2, sum2)) * scale_hi;
        }
        if (PLANES == 1u && VECTORS > 3u) {
            let x3 = input_at(first + 3u * chunks + chunk);
            let sum3 = integer_dot(ones, x3);
            values.lo3 += vec4<f32>(signed_lo(codes, x3, sum3)) * scale_lo;
            values.hi3 += vec4<f32>(signed_hi(codes, x3, sum3)) * scale_hi;
        }
    }
    values.lo0 = team_add(values.lo0) * token_unit(vector / PLANES);
    values.hi0 = team_add(values.hi0) * token_unit(vector / PLANES);
    if (PLANES == 1u && VECTORS > 1u) {
        values.lo1 = team_add(values.lo1) * token_unit(vector + 1u);
        values.hi1 = team_add(values.hi1) * token_unit(vector + 1u);
    }
    if (PLANES == 1u && VECTORS > 2u) {
        values.lo2 = team_add(values.lo2) * token_unit(vector + 2u);
        values.hi2 = team_add(values.hi2) * token_unit(vector + 2u);
    }
    if (PLANES == 1u && VECTORS > 3u) {
        values.lo3 = team_add(values.lo3) * token_unit(vector + 3u);
        values.hi3 = team_add(values.hi3) * token_unit(vector + 3u);
    }
    return values;
}
