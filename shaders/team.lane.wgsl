// A team of one: each invocation computes its rows by itself. No reduction, no barrier; the arrangement for
// several tokens, and for adapters (software ones above all) where lanes are expensive to bring together.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    prepare_input(local);
    run(Team(workgroup.x * WORKGROUP + local, 0u, 1u), workgroups.x * WORKGROUP, workgroup.y);
}

fn team_add(value: vec4<f32>) -> vec4<f32> {
    return value;
}

fn team_add_integers(value: vec4<i32>) -> vec4<i32> {
    return value;
}
