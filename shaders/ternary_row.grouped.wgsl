// The product of eight rows with one token where every `segment.group` chunks of columns have a scale of their
// own: the integer sum of a chunk meets its scale at once.

fn product(segment: Segment, octet: u32, team: Team) -> Values {
    var values = Values();
    let place = octet_place(segment, octet);
    var walk = Walk(place.first, team.lane);
    for (var chunk = team.lane; chunk < params.filled_chunks; chunk += team.lanes) {
        let x = planes_at(chunk);
        // With a value: in a loop, Chromium leaves a variable without one as it was.
        var partial = Partial();
        add_chunk(&partial, next_codes(&walk, place, team.lanes), x);
        let sums = sums_of(partial);
        let total = chunk_sum(x.high);
        var lo = sums.lo0 - total;
        var hi = sums.hi0 - total;
        if (PLANES == 3u) {
            // Sixteen columns of three digits fit 32 bits.
            let middle = chunk_sum(x.middle);
            let low = chunk_sum(x.low);
            lo = lo * 65536 + (sums.lo1 - middle) * 256 + (sums.lo2 - low);
            hi = hi * 65536 + (sums.hi1 - middle) * 256 + (sums.hi2 - low);
        }
        let scales = group_scales(segment, octet, chunk);
        values.lo += vec4<f32>(lo) * scales.lo;
        values.hi += vec4<f32>(hi) * scales.hi;
    }
    let sums = Values(team_add(values.lo), team_add(values.hi));
    return finished(sums, row_scales(segment, octet, true), facts_of(0u).unit);
}
