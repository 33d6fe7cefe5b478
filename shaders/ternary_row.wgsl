// Ternary products of one token: teams (team.*.wgsl) divide the octets of rows. There is one tile of tokens.

/// Computes the team's share of the rows, one of `teams`.
fn run(team: Team, teams: u32, tile: u32) {
    let rounds = (params.octets + teams - 1u) / teams;
    for (var round = 0u; round < rounds; round++) {
        let place = round * teams + team.index;
        // Teams without rows compute the last ones too: they must meet the others at barriers.
        let octet = min(place, params.octets - 1u);
        let segment = params.segment[segment_index(octet)];
        let own = octet - segment.first_octet;
        var values = product(segment, own, team);
        if (EPILOGUE >= 2u) {
            let up = product(params.segment[1], own, team);
            values = Values(activate(values.lo) * up.lo, activate(values.hi) * up.hi);
        }
        if (place < params.octets && team.lane == 0u) {
            put_octet(segment, own, 0u, values);
        }
    }
}

/// Where a lane's next chunk of codes lies: it walks the streams of an octet in steps of the team's width.
struct Walk {
    stream: u32,
    step: u32,
}

fn code_place(walk: ptr<function, Walk>, place: Place, lanes: u32) -> u32 {
    let per_stream = params.chunks / STREAMS;
    while ((*walk).step >= per_stream) {
        (*walk).step -= per_stream;
        (*walk).stream += place.stride;
    }
    let at = (*walk).stream + 2u * (*walk).step;
    (*walk).step += lanes;
    return at;
}
