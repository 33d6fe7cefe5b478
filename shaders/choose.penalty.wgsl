// The repetition penalty (https://arxiv.org/abs/1909.05858) on logits as they are read.
//
// VOCABULARY  how many there are
// PENALTY     whether there is a penalty

const NEVER = 0xffffffffu;

struct Params {
    penalty: f32,
    inverse_temperature: f32,
    /// Most tokens kept; 0 keeps all.
    top_k: u32,
    top_p: f32,
    min_p: f32,
    /// Tokens of the step whose logits these are.
    tokens: u32,
    /// Workgroups that share the vocabulary.
    parts: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32, VOCABULARY>;
/// A bit for each token that was said.
@group(0) @binding(2) var<storage, read_write> said: array<u32, (VOCABULARY + 31u) / 32u>;

fn penalised(id: u32) -> f32 {
    let logit = logits[id];
    if (!PENALTY || ((said[id / 32u] >> (id % 32u)) & 1u) == 0u) {
        return logit;
    }
    return select(logit * params.penalty, logit / params.penalty, logit > 0.0);
}

/// Logits in their order, as integers.
fn ordered(value: f32) -> u32 {
    // Adding zero makes the two zeros one.
    let bits = bitcast<u32>(value + 0.0);
    return select(~bits, bits | 0x80000000u, (bits & 0x80000000u) == 0u);
}
