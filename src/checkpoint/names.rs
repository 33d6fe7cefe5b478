//! Tensor names ↔ roles, for both naming schemes, in two tables.

use crate::model::{LayerRole, Role};

/// What a tensor contributes to its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The matrix or vector itself.
    Weight,
    /// One factor for the whole matrix.
    Scale,
    /// A scale for every group of columns (MLX).
    GroupScales,
    /// A bias for every group of columns (MLX).
    GroupBiases,
}

/// Who named the tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    HuggingFace,
    Gguf,
}

const HUGGING_FACE: &[(&str, LayerRole)] = &[
    ("input_layernorm", LayerRole::AttnNorm),
    ("self_attn.q_proj", LayerRole::Query),
    ("self_attn.k_proj", LayerRole::Key),
    ("self_attn.v_proj", LayerRole::Value),
    ("self_attn.q_norm", LayerRole::QueryNorm),
    ("self_attn.k_norm", LayerRole::KeyNorm),
    ("self_attn.attn_sub_norm", LayerRole::AttnSubNorm),
    ("self_attn.inner_attn_ln", LayerRole::AttnSubNorm),
    ("self_attn.o_proj", LayerRole::AttnOutput),
    ("post_attention_layernorm", LayerRole::FfnNorm),
    ("mlp.gate_proj", LayerRole::Gate),
    ("mlp.up_proj", LayerRole::Up),
    ("mlp.ffn_sub_norm", LayerRole::FfnSubNorm),
    ("mlp.ffn_layernorm", LayerRole::FfnSubNorm),
    ("mlp.down_proj", LayerRole::Down),
];

const GGUF: &[(&str, LayerRole)] = &[
    ("attn_norm", LayerRole::AttnNorm),
    ("attn_q", LayerRole::Query),
    ("attn_k", LayerRole::Key),
    ("attn_v", LayerRole::Value),
    ("attn_q_norm", LayerRole::QueryNorm),
    ("attn_k_norm", LayerRole::KeyNorm),
    ("attn_sub_norm", LayerRole::AttnSubNorm),
    ("attn_output", LayerRole::AttnOutput),
    ("ffn_norm", LayerRole::FfnNorm),
    ("ffn_gate", LayerRole::Gate),
    ("ffn_up", LayerRole::Up),
    ("ffn_sub_norm", LayerRole::FfnSubNorm),
    ("ffn_down", LayerRole::Down),
];

impl Naming {
    /// The role and part of the tensor `name`; `None` for a name that no supported family has.
    pub fn parse(self, name: &str) -> Option<(Role, Part)> {
        let (module, suffix) = name.rsplit_once('.')?;
        let part = match (self, suffix) {
            (_, "weight") => Part::Weight,
            (Naming::Gguf, "scale") | (Naming::HuggingFace, "weight_scale") => Part::Scale,
            (Naming::HuggingFace, "scales") => Part::GroupScales,
            (Naming::HuggingFace, "biases") => Part::GroupBiases,
            _ => return None,
        };
        Some((self.role(module)?, part))
    }

    fn role(self, module: &str) -> Option<Role> {
        let (layers, table) = match self {
            Naming::HuggingFace => ("model.layers.", HUGGING_FACE),
            Naming::Gguf => ("blk.", GGUF),
        };
        if let Some(rest) = module.strip_prefix(layers) {
            let (index, module) = rest.split_once('.')?;
            let (_, role) = table.iter().find(|(name, _)| *name == module)?;
            return Some(Role::Layer(index.parse().ok()?, *role));
        }
        match (self, module) {
            (Naming::HuggingFace, "model.embed_tokens") | (Naming::Gguf, "token_embd") => {
                Some(Role::Embedding)
            }
            (Naming::HuggingFace, "model.norm") | (Naming::Gguf, "output_norm") => Some(Role::OutputNorm),
            (Naming::HuggingFace, "lm_head") | (Naming::Gguf, "output") => Some(Role::Head),
            (Naming::Gguf, "rope_freqs") => Some(Role::RopeFactors),
            _ => None,
        }
    }

    /// The name that `role` has in files.
    pub fn name(self, role: Role) -> String {
        let table = match self {
            Naming::HuggingFace => HUGGING_FACE,
            Naming::Gguf => GGUF,
        };
        match (self, role) {
            (_, Role::Layer(index, role)) => {
                let module = table.iter().find(|(_, entry)| *entry == role).map_or("?", |(name, _)| name);
                let prefix = if self == Naming::Gguf { "blk" } else { "model.layers" };
                format!("{prefix}.{index}.{module}.weight")
            }
            (Naming::HuggingFace, Role::Embedding) => "model.embed_tokens.weight".into(),
            (Naming::HuggingFace, Role::OutputNorm) => "model.norm.weight".into(),
            (Naming::HuggingFace, Role::Head) => "lm_head.weight".into(),
            (Naming::Gguf, Role::Embedding) => "token_embd.weight".into(),
            (Naming::Gguf, Role::OutputNorm) => "output_norm.weight".into(),
            (Naming::Gguf, Role::Head) => "output.weight".into(),
            (_, Role::RopeFactors) => "rope_freqs.weight".into(),
        }
    }
}

/// Tensors that hold nothing the config does not say already.
pub(super) fn is_redundant(name: &str) -> bool {
    name.ends_with("rotary_emb.inv_freq")
}

/// Whether `role` is a matrix product of a layer, the kind of weight that is ternary.
pub(super) fn is_layer_linear(role: Role) -> bool {
    use LayerRole::*;
    matches!(role, Role::Layer(_, Query | Key | Value | AttnOutput | Gate | Up | Down))
}

/// Whether `role` is a matrix.
pub(super) fn is_matrix(role: Role) -> bool {
    is_layer_linear(role) || matches!(role, Role::Embedding | Role::Head)
}
