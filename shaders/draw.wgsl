// One draw among the tokens that temperature, top-k, top-p and min-p leave, in this order; the steps are those
// of src/generate/sampler.rs. One workgroup does it all: thresholds are found byte by byte over the ordered
// bits of the logits, so nothing is sorted. A lane owns a run of ids, so that equals and sums go by id.

const WORKGROUP = 256u;
const SLOTS = 256u;
/// The sum of all kept weights as integers, which add up to the same in any order.
const UNIT = 1073741824.0;

/// How many steps have drawn, then uniform numbers in [0, 1) for SLOTS steps.
@group(0) @binding(4) var<storage, read_write> random: array<u32>;

var<workgroup> bins: array<atomic<u32>, WORKGROUP>;
var<workgroup> floats: array<f32, WORKGROUP>;
var<workgroup> counts: array<u32, WORKGROUP>;
var<workgroup> prefix: u32;
var<workgroup> wanted: u32;
var<workgroup> wanted_mass: f32;
var<workgroup> total: f32;
var<workgroup> drawer: u32;

var<private> first_id: u32;
var<private> end_id: u32;
var<private> greatest: f32;

/// Which tokens are kept: those with a greater key, and the first `room` with this one.
struct Threshold {
    key: u32,
    room: u32,
}

fn weight_of(logit: f32) -> f32 {
    return exp((logit - greatest) * params.inverse_temperature);
}

fn is_kept(threshold: Threshold, key: u32, equals_before: u32) -> bool {
    return key > threshold.key || (key == threshold.key && equals_before < threshold.room);
}

fn greatest_logit(local: u32) -> f32 {
    var own = penalised(0u);
    for (var id = first_id; id < end_id; id++) {
        own = max(own, penalised(id));
    }
    floats[local] = own;
    workgroupBarrier();
    for (var lane = 0u; lane < WORKGROUP; lane++) {
        own = max(own, floats[lane]);
    }
    workgroupBarrier();
    return own;
}

/// The sum of `value` over the lanes before this one; `total` becomes that of all.
fn sum_before(local: u32, value: f32) -> f32 {
    floats[local] = value;
    workgroupBarrier();
    if (local == 0u) {
        var sum = 0.0;
        for (var lane = 0u; lane < WORKGROUP; lane++) {
            let own = floats[lane];
            floats[lane] = sum;
            sum += own;
        }
        total = sum;
    }
    workgroupBarrier();
    return floats[local];
}

/// How many tokens of the lanes before this one have the threshold's key.
fn equals_before(local: u32, threshold: Threshold) -> u32 {
    var own = 0u;
    for (var id = first_id; id < end_id; id++) {
        if (ordered(penalised(id)) == threshold.key) {
            own++;
        }
    }
    counts[local] = own;
    workgroupBarrier();
    var before = 0u;
    for (var lane = 0u; lane < local; lane++) {
        before += counts[lane];
    }
    workgroupBarrier();
    return before;
}

/// The sum of this lane's kept weights.
fn kept_weight(threshold: Threshold, before: u32) -> f32 {
    var equals = before;
    var sum = 0.0;
    for (var id = first_id; id < end_id; id++) {
        let logit = penalised(id);
        let key = ordered(logit);
        let weight = weight_of(logit);
        if (is_kept(threshold, key, equals) && weight >= params.min_p) {
            sum += weight;
        }
        equals += select(0u, 1u, key == threshold.key);
    }
    return sum;
}

/// The `top_k` greatest logits.
fn top_k_threshold(local: u32) -> Threshold {
    if (local == 0u) {
        prefix = 0u;
        wanted = params.top_k;
    }
    for (var level = 0u; level < 4u; level++) {
        let shift = 24u - 8u * level;
        atomicStore(&bins[local], 0u);
        workgroupBarrier();
        for (var id = first_id; id < end_id; id++) {
            let key = ordered(penalised(id));
            if (level == 0u || (key >> (shift + 8u)) == prefix) {
                atomicAdd(&bins[(key >> shift) & 255u], 1u);
            }
        }
        workgroupBarrier();
        if (local == 0u) {
            var left = wanted;
            var bin = 255u;
            while (bin > 0u && atomicLoad(&bins[bin]) < left) {
                left -= atomicLoad(&bins[bin]);
                bin--;
            }
            wanted = left;
            prefix = (prefix << 8u) | bin;
        }
        workgroupBarrier();
    }
    let threshold = Threshold(prefix, wanted);
    workgroupBarrier();
    return threshold;
}

/// The greatest of the kept tokens whose weights come to the share `top_p` of `sum`, that of all kept.
fn top_p_threshold(local: u32, kept: Threshold, before: u32, sum: f32) -> Threshold {
    if (local == 0u) {
        prefix = 0u;
        wanted_mass = max(params.top_p * UNIT, 1.0);
    }
    for (var level = 0u; level < 4u; level++) {
        let shift = 24u - 8u * level;
        atomicStore(&bins[local], 0u);
        workgroupBarrier();
        var equals = before;
        for (var id = first_id; id < end_id; id++) {
            let logit = penalised(id);
            let key = ordered(logit);
            if (is_kept(kept, key, equals) && (level == 0u || (key >> (shift + 8u)) == prefix)) {
                atomicAdd(&bins[(key >> shift) & 255u], u32(weight_of(logit) / sum * UNIT));
            }
            equals += select(0u, 1u, key == kept.key);
        }
        workgroupBarrier();
        if (local == 0u) {
            var left = wanted_mass;
            var bin = 255u;
            while (bin > 0u && f32(atomicLoad(&bins[bin])) < left) {
                left -= f32(atomicLoad(&bins[bin]));
                bin--;
            }
            wanted_mass = left;
            prefix = (prefix << 8u) | bin;
        }
        workgroupBarrier();
    }
    let key = prefix;
    let left = wanted_mass;
    workgroupBarrier();
    let bits = select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u);
    let each = weight_of(bitcast<f32>(bits)) / sum * UNIT;
    var room = NEVER;
    if (each >= 1.0) {
        room = max(1u, u32(min(ceil(left / each), 1e9)));
    }
    if (key == kept.key) {
        room = min(room, kept.room);
    }
    return Threshold(key, room);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) local: u32) {
    let share = (VOCABULARY + WORKGROUP - 1u) / WORKGROUP;
    first_id = min(VOCABULARY, local * share);
    end_id = min(VOCABULARY, first_id + share);
    greatest = greatest_logit(local);

    var threshold = Threshold(0u, NEVER);
    if (params.top_k > 0u && params.top_k < VOCABULARY) {
        threshold = top_k_threshold(local);
    }
    var before = 0u;
    if (params.top_k > 0u || params.top_p < 1.0) {
        before = equals_before(local, threshold);
    }
    if (params.top_p < 1.0) {
        var equals = before;
        var own = 0.0;
        for (var id = first_id; id < end_id; id++) {
            let logit = penalised(id);
            let key = ordered(logit);
            if (is_kept(threshold, key, equals)) {
                own += weight_of(logit);
            }
            equals += select(0u, 1u, key == threshold.key);
        }
        sum_before(local, own);
        let sum = total;
        threshold = top_p_threshold(local, threshold, before, sum);
        before = equals_before(local, threshold);
    }

    let own = kept_weight(threshold, before);
    let below = sum_before(local, own);
    let step = random[0] % SLOTS;
    let drawn = bitcast<f32>(random[1u + step]) * total;
    // The last lane that has something to give and does not begin beyond the drawn number.
    counts[local] = select(0u, 1u, own > 0.0 && below <= drawn);
    workgroupBarrier();
    if (local == 0u) {
        drawer = 0u;
        for (var lane = 0u; lane < WORKGROUP; lane++) {
            if (counts[lane] == 1u) {
                drawer = lane;
            }
        }
    }
    workgroupBarrier();
    if (local == drawer) {
        var left = drawn - below;
        var equals = before;
        var chosen = min(first_id, VOCABULARY - 1u);
        for (var id = first_id; id < end_id && left >= 0.0; id++) {
            let logit = penalised(id);
            let key = ordered(logit);
            let weight = weight_of(logit);
            if (is_kept(threshold, key, equals) && weight >= params.min_p) {
                chosen = id;
                left -= weight;
            }
            equals += select(0u, 1u, key == threshold.key);
        }
        random[0] += 1u;
        finish(chosen);
    }
}
