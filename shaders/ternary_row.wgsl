// Ternary products of one token: teams (team.*.wgsl) divide the octets of rows. There is one tile of tokens.

@group(0) @binding(1) var<storage, read> codes: array<array<vec4<u32>, RUN>>;

/// Integer products of eight rows with one token, digit by digit.
struct Sums {
    lo0: vec4<i32>, hi0: vec4<i32>,
    lo1: vec4<i32>, hi1: vec4<i32>,
    lo2: vec4<i32>, hi2: vec4<i32>,
}

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
    run: u32,
    step: u32,
}

/// The codes of the next chunk: of the first four rows, and of the others.
struct ChunkCodes {
    lo: vec4<u32>,
    hi: vec4<u32>,
}

fn next_codes(walk: ptr<function, Walk>, place: Place, lanes: u32) -> ChunkCodes {
    while ((*walk).step >= RUN / 2u) {
        (*walk).step -= RUN / 2u;
        (*walk).run += place.stride;
    }
    let at = 2u * (*walk).step;
    (*walk).step += lanes;
    return ChunkCodes(codes[(*walk).run][at], codes[(*walk).run][at + 1u]);
}
