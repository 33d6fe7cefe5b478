// The lanes of a quad load a pair of vectors each and pass it on to the others.

const SHARED = true;

fn across_x(x: PairInput) -> PairInput {
    return PairInput(quadSwapX(x.word0), quadSwapX(x.word1), quadSwapX(x.total));
}

fn across_y(x: PairInput) -> PairInput {
    return PairInput(quadSwapY(x.word0), quadSwapY(x.word1), quadSwapY(x.total));
}

fn across_both(x: PairInput) -> PairInput {
    return PairInput(quadSwapDiagonal(x.word0), quadSwapDiagonal(x.word1), quadSwapDiagonal(x.total));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    run(id.x, workgroup.y * select(2u, 8u, PLANES == 1u), lane % 4u);
}
