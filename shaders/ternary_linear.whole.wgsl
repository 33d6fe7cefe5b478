// The product of eight rows where a scale covers whole rows: sums stay integers to the end.

fn product(segment: Segment, octet: u32, vector: u32, team: Team) -> Values {
    var lo0 = vec4(0i); var hi0 = vec4(0i);
    var lo1 = vec4(0i); var hi1 = vec4(0i);
    var lo2 = vec4(0i); var hi2 = vec4(0i);
    var lo3 = vec4(0i); var hi3 = vec4(0i);
    let place = octet_place(segment, octet);
    let first = first_vector(vector);
    let chunks = params.chunks;
    let per_stream = chunks / STREAMS;
    var stream_start = place.first;
    var step = team.lane;
    for (var chunk = team.lane; chunk < chunks; chunk += team.lanes) {
        while (step >= per_stream) {
            step -= per_stream;
            stream_start += place.stride;
        }
        let codes = decode(stream_start + 2u * step);
        step += team.lanes;
        let x0 = input_at(first + chunk);
        lo0 += dot_lo(codes, x0);
        hi0 += dot_hi(codes, x0);
        if (VECTORS > 1u) {
            let x1 = input_at(first + chunks + chunk);
            lo1 += dot_lo(codes, x1);
            hi1 += dot_hi(codes, x1);
        }
        if (VECTORS > 2u) {
            let x2 = input_at(first + 2u * chunks + chunk);
            lo2 += dot_lo(codes, x2);
            hi2 += dot_hi(codes, x2);
        }
        if (VECTORS > 3u) {
            let x3 = input_at(first + 3u * chunks + chunk);
            lo3 += dot_lo(codes, x3);
            hi3 += dot_hi(codes, x3);
        }
    }
    lo0 = team_add_integers(lo0);
    hi0 = team_add_integers(hi0);
    if (VECTORS > 1u) {
        lo1 = team_add_integers(lo1);
        hi1 = team_add_integers(hi1);
    }
    if (VECTORS > 2u) {
        lo2 = team_add_integers(lo2);
        hi2 = team_add_integers(hi2);
    }
    if (VECTORS > 3u) {
        lo3 = team_add_integers(lo3);
        hi3 = team_add_integers(hi3);
    }

    var scale_lo = vec4(segment.scale);
    var scale_hi = vec4(segment.scale);
    if (segment.scales != NONE) {
        scale_lo = bitcast<vec4<f32>>(weights[segment.scales + 2u * octet]);
        scale_hi = bitcast<vec4<f32>>(weights[segment.scales + 2u * octet + 1u]);
    }
    var values: Values;
    let totals = bitcast<vec4<i32>>(input_at(vector / PLANES));
    if (PLANES == 3u) {
        let unit = token_unit(vector / PLANES);
        let lo = (vec4<f32>(lo0 - totals.y) * 65536.0 + vec4<f32>(lo1 - totals.z) * 256.0)
            + vec4<f32>(lo2 - totals.w);
        let hi = (vec4<f32>(hi0 - totals.y) * 65536.0 + vec4<f32>(hi1 - totals.z) * 256.0)
            + vec4<f32>(hi2 - totals.w);
        values.lo0 = lo * scale_lo * unit;
        values.hi0 = hi * scale_hi * unit;
        return values;
    }
    values.lo0 = vec4<f32>(lo0 - totals.y) * (scale_lo * token_unit(vector));
    values.hi0 = vec4<f32>(hi0 - totals.y) * (scale_hi * token_unit(vector));
    if (VECTORS > 1u) {
        values.lo1 = vec4<f32>(lo1 - token_total(vector + 1u)) * (scale_lo * token_unit(vector + 1u));
        values.hi1 = vec4<f32>(hi1 - token_total(vector + 1u)) * (scale_hi * token_unit(vector + 1u));
    }
    if (VECTORS > 2u) {
        values.lo2 = vec4<f32>(lo2 - token_total(vector + 2u)) * (scale_lo * token_unit(vector + 2u));
        values.hi2 = vec4<f32>(hi2 - token_total(vector + 2u)) * (scale_hi * token_unit(vector + 2u));
    }
    if (VECTORS > 3u) {
        values.lo3 = vec4<f32>(lo3 - token_total(vector + 3u)) * (scale_lo * token_unit(vector + 3u));
        values.hi3 = vec4<f32>(hi3 - token_total(vector + 3u)) * (scale_hi * token_unit(vector + 3u));
    }
    return values;
}
