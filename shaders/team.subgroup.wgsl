// A subgroup is a team, of whatever size the device gives it.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
    @builtin(subgroup_size) size: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let teams = WORKGROUP / size;
    prepare_input(local);
    run(Team(workgroup.x * teams + local / size, lane, size), workgroups.x * teams, workgroup.y);
}

fn team_add(value: vec4<f32>) -> vec4<f32> {
    return subgroupAdd(value);
}

fn team_add_integers(value: vec4<i32>) -> vec4<i32> {
    return subgroupAdd(value);
}
