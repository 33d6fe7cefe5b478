//! GGUF metadata → [`ModelSpec`].

use super::entry::{Stored, TensorEntry};
use super::metadata::Metadata;
use super::spec::{
    self, MAX_CONTEXT, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_VOCAB, MAX_WIDTH, ModelSpec, Quantization,
    Tied, dimension,
};
use super::split::SplitPart;
use crate::Result;
use crate::error::{corrupt, unsupported};
use crate::model::{Activation, LinearInput, ModelConfig, Rope, RopeScaling};

/// What sets the families apart.
struct Family {
    activation: Activation,
    sub_norms: bool,
    qk_norm: bool,
    interleaved_rope: bool,
    /// `None` where the encoding of the weights decides.
    input: Option<LinearInput>,
}

fn family(architecture: &str) -> Option<Family> {
    let bitnet = |activation| Family {
        activation,
        sub_norms: true,
        qk_norm: false,
        interleaved_rope: false,
        input: Some(LinearInput::Int8),
    };
    Some(match architecture {
        "bitnet" => bitnet(Activation::Silu),
        "bitnet-b1.58" | "bitnet-25" => bitnet(Activation::Relu2),
        "llama" => Family {
            activation: Activation::Silu,
            sub_norms: false,
            qk_norm: false,
            interleaved_rope: true,
            input: None,
        },
        "qwen3" => Family {
            activation: Activation::Silu,
            sub_norms: false,
            qk_norm: true,
            interleaved_rope: false,
            input: Some(LinearInput::Float),
        },
        _ => return None,
    })
}

/// Reads the model's shape and options.
///
/// # Errors
/// `unsupported_format` for other architectures and options, `corrupt_file` for dimensions that cannot
/// be.
pub(super) fn model_spec(metadata: &Metadata, entries: &[TensorEntry]) -> Result<ModelSpec> {
    if let Some(part) = SplitPart::of(metadata)?.filter(|part| part.number > 0) {
        return Err(part.out_of_order(0));
    }
    let Some(architecture) = metadata.text("general.architecture") else {
        return Err(corrupt!("the GGUF file does not name its architecture (general.architecture)"));
    };
    let family = family(architecture).ok_or_else(|| spec::unsupported_architecture(architecture))?;
    let keys = Keys { metadata, architecture };
    refuse_unsupported(&keys)?;

    let hidden_size = keys.dimension("embedding_length", MAX_WIDTH)?;
    let num_heads = keys.dimension("attention.head_count", MAX_HEADS)?;
    let head_dim = match keys.optional("attention.key_length", MAX_HEAD_DIM)? {
        Some(head_dim) => head_dim,
        None if hidden_size.is_multiple_of(num_heads) => hidden_size / num_heads,
        None => {
            return Err(corrupt!("{num_heads} heads do not divide the width {hidden_size}"));
        }
    };
    for key in ["attention.value_length", "rope.dimension_count"] {
        if let Some(other) = keys.optional(key, MAX_HEAD_DIM)?.filter(|other| *other != head_dim) {
            return Err(unsupported!(
                "{architecture}.{key} is {other} while heads are {head_dim} wide: Sterna runs models \
                 where both are equal"
            ));
        }
    }
    let config = ModelConfig {
        architecture: architecture.to_owned(),
        vocab_size: vocab_size(&keys, entries)?,
        hidden_size,
        intermediate_size: keys.dimension("feed_forward_length", MAX_WIDTH)?,
        num_layers: keys.dimension("block_count", MAX_LAYERS)?,
        num_heads,
        num_kv_heads: keys.optional("attention.head_count_kv", MAX_HEADS)?.unwrap_or(num_heads),
        head_dim,
        max_context: keys.dimension("context_length", MAX_CONTEXT)?,
        norm_eps: keys.float("attention.layer_norm_rms_epsilon")?.ok_or_else(|| {
            corrupt!("the GGUF file has no {architecture}.attention.layer_norm_rms_epsilon")
        })?,
        activation: family.activation,
        rope: Rope { theta: keys.float("rope.freq_base")?.unwrap_or(10_000.0), scaling: scaling(&keys)? },
        sub_norms: family.sub_norms,
        qk_norm: family.qk_norm,
        linear_input: family.input.unwrap_or_else(|| input_by_encoding(entries)),
    };
    spec::check(&config)?;
    Ok(ModelSpec {
        config,
        tied: Tied::IfAbsent,
        quantization: Quantization::None,
        interleaved_rope: family.interleaved_rope,
        ternary_vocabulary: architecture == "qwen3",
    })
}

fn refuse_unsupported(keys: &Keys) -> Result<()> {
    if keys.uint("expert_count")?.is_some_and(|count| count > 0) {
        return Err(unsupported!("mixture-of-experts models are not supported. {}", spec::SUPPORTED));
    }
    Ok(())
}

fn vocab_size(keys: &Keys, entries: &[TensorEntry]) -> Result<usize> {
    let rows = entries.iter().find(|entry| entry.name == "token_embd.weight").map(|entry| entry.shape[0]);
    let tokens = keys.metadata.array_len("tokenizer.ggml.tokens");
    // The embedding may be in a later part of a split model.
    let split = SplitPart::of(keys.metadata)?.and(tokens).map(|tokens| tokens as u64);
    let vocab_size = match keys.uint("vocab_size")?.or(rows).or(split) {
        Some(value) => dimension("the vocabulary size", value, MAX_VOCAB)?,
        None => return Err(corrupt!("the GGUF file has no token_embd.weight")),
    };
    match tokens {
        Some(tokens) if tokens > vocab_size => Err(corrupt!(
            "the tokenizer has {tokens} tokens but the model only {vocab_size} embeddings: the file mixes \
             two models"
        )),
        _ => Ok(vocab_size),
    }
}

fn scaling(keys: &Keys) -> Result<RopeScaling> {
    let factor = keys.float("rope.scaling.factor")?;
    let needed = || factor.ok_or_else(|| corrupt!("the GGUF file's rope scaling has no factor"));
    match keys.metadata.text(&keys.name("rope.scaling.type")) {
        None | Some("none") => Ok(match keys.float("rope.scale_linear")? {
            Some(factor) if factor != 1.0 => RopeScaling::Linear { factor },
            _ => RopeScaling::None,
        }),
        Some("linear") => Ok(RopeScaling::Linear { factor: needed()? }),
        Some("yarn") => {
            let factor = needed()?;
            // llama.cpp multiplies its attention factor with the one that YaRN prescribes.
            let attention = match keys.float("rope.scaling.attn_factor")? {
                None => keys.float("rope.scaling.yarn_attn_factor")?,
                given => given,
            };
            Ok(RopeScaling::Yarn {
                factor,
                original_context: keys.dimension("rope.scaling.original_context_length", MAX_CONTEXT)?,
                beta_fast: keys.float("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
                beta_slow: keys.float("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
                attention_factor: attention.map(|attention| attention * (1.0 + 0.1 * factor.ln())),
            })
        }
        Some(other) => Err(unsupported!(
            "the rope scaling {other:?} is not supported: Sterna runs linear and yarn scaling, and \
             rope_freqs.weight"
        )),
    }
}

/// What the tensors of a further part say of a split model.
pub(super) fn add_part(config: &mut ModelConfig, entries: &[TensorEntry]) {
    let by_encoding = family(&config.architecture).is_some_and(|family| family.input.is_none());
    if by_encoding && input_by_encoding(entries) == LinearInput::Int8 {
        config.linear_input = LinearInput::Int8;
    }
}

/// I2_S is the format of models trained with int8 activations (BitLinear); the other ternary encodings say
/// nothing of activations, and weight-only models (TriLM) use them.
fn input_by_encoding(entries: &[TensorEntry]) -> LinearInput {
    match entries.iter().any(|entry| entry.stored == Stored::I2S) {
        true => LinearInput::Int8,
        false => LinearInput::Float,
    }
}

/// The metadata under an architecture's prefix.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn uint(&self, key: &str) -> Result<Option<u64>> {
        let name = self.name(key);
        if self.metadata.array_len(&name).is_some() {
            return Err(unsupported!("{name} differs from layer to layer, which Sterna does not support"));
        }
        self.metadata.uint(&name)
    }

    fn float(&self, key: &str) -> Result<Option<f32>> {
        self.metadata.float(&self.name(key))
    }

    fn optional(&self, key: &str, most: usize) -> Result<Option<usize>> {
        self.uint(key)?.map(|value| dimension(&self.name(key), value, most)).transpose()
    }

    fn dimension(&self, key: &str, most: usize) -> Result<usize> {
        let name = self.name(key);
        self.optional(key, most)?.ok_or_else(|| corrupt!("the GGUF file has no {name}"))
    }
}
