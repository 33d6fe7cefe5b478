// LANES neighbours of a workgroup are a team and meet in workgroup memory: for devices without subgroups.

const TEAMS = WORKGROUP / LANES;

var<workgroup> team_floats: array<vec4<f32>, WORKGROUP>;
var<workgroup> team_integers: array<vec4<i32>, WORKGROUP>;
var<private> team_local: u32;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    team_local = local;
    prepare_input(local);
    run(Team(workgroup.x * TEAMS + local / LANES, local % LANES, LANES), workgroups.x * TEAMS, workgroup.y);
}

fn team_add(value: vec4<f32>) -> vec4<f32> {
    team_floats[team_local] = value;
    workgroupBarrier();
    let first = team_local / LANES * LANES;
    var sum = team_floats[first];
    for (var lane = 1u; lane < LANES; lane++) {
        sum += team_floats[first + lane];
    }
    workgroupBarrier();
    return sum;
}

fn team_add_integers(value: vec4<i32>) -> vec4<i32> {
    team_integers[team_local] = value;
    workgroupBarrier();
    let first = team_local / LANES * LANES;
    var sum = team_integers[first];
    for (var lane = 1u; lane < LANES; lane++) {
        sum += team_integers[first + lane];
    }
    workgroupBarrier();
    return sum;
}
