// The greatest logit of each workgroup's share of the vocabulary; the first of equals.

const WORKGROUP = 64u;

@group(0) @binding(3) var<storage, read_write> best: array<vec2<u32>>;

var<workgroup> found: array<vec2<u32>, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let share = (VOCABULARY + params.parts - 1u) / params.parts;
    let end = min(VOCABULARY, (workgroup.x + 1u) * share);
    var own = vec2(0u, NEVER);
    for (var id = workgroup.x * share + local; id < end; id += WORKGROUP) {
        let key = ordered(penalised(id));
        if (key > own.x) {
            own = vec2(key, id);
        }
    }
    found[local] = own;
    workgroupBarrier();
    if (local == 0u) {
        for (var i = 1u; i < WORKGROUP; i++) {
            let other = found[i];
            if (other.x > own.x || (other.x == own.x && other.y < own.y)) {
                own = other;
            }
        }
        best[workgroup.x] = own;
    }
}
