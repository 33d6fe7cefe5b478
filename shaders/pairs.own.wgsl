// Each invocation loads its pairs of vectors by itself, on devices without subgroups.

const SHARED = false;

fn across_x(x: PairInput) -> PairInput {
    return x;
}

fn across_y(x: PairInput) -> PairInput {
    return x;
}

fn across_both(x: PairInput) -> PairInput {
    return x;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(global_invocation_id) id: vec3<u32>) {
    run(id.x, workgroup.y * select(2u, 4u, PLANES == 1u), 0u);
}
