// The greatest of the workgroups' greatest logits: greedy decoding.

const WORKGROUP = 64u;

@group(0) @binding(4) var<storage, read> best: array<vec2<u32>>;

var<workgroup> found: array<vec2<u32>, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) local: u32) {
    var own = vec2(0u, NEVER);
    for (var i = local; i < params.parts; i += WORKGROUP) {
        let other = best[i];
        if (other.x > own.x || (other.x == own.x && other.y < own.y)) {
            own = other;
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
        // Where no logit is a number, the first token stands in, as on the CPU.
        finish(select(own.y, 0u, own.y >= VOCABULARY));
    }
}
