// The product of eight rows with one token where a scale covers whole rows: sums stay integers to the end.

fn product(segment: Segment, octet: u32, team: Team) -> Values {
    var partial = Partial();
    let place = octet_place(segment, octet);
    var walk = Walk(place.first, team.lane);
    for (var chunk = team.lane; chunk < CHUNKS; chunk += team.lanes) {
        add_chunk(&partial, next_codes(&walk, place, team.lanes), planes_at(chunk));
    }
    let sums = sums_of(partial);
    let facts = facts_of(0u);
    var lo = vec4<f32>(team_add_integers(sums.lo0) - facts.totals.x);
    var hi = vec4<f32>(team_add_integers(sums.hi0) - facts.totals.x);
    if (PLANES == 3u) {
        lo = (lo * 65536.0 + vec4<f32>(team_add_integers(sums.lo1) - facts.totals.y) * 256.0)
            + vec4<f32>(team_add_integers(sums.lo2) - facts.totals.z);
        hi = (hi * 65536.0 + vec4<f32>(team_add_integers(sums.hi1) - facts.totals.y) * 256.0)
            + vec4<f32>(team_add_integers(sums.hi2) - facts.totals.z);
    }
    return finished(Values(lo, hi), row_scales(segment, octet, false), facts.unit);
}
