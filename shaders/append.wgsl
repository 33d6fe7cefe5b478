// Appending by itself, for the tokens of a prompt: they attend to one another, so all must be there first.

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    append(workgroup.y, workgroup.x, local, 32u);
}
