//! Hugging Face `config.json` → [`ModelSpec`]. Defaults are those of the config classes of transformers.

use serde::Deserialize;
use serde_json::Value;

use super::spec::{
    self, MAX_CONTEXT, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_VOCAB, MAX_WIDTH, ModelSpec, Quantization,
    Tied, dimension,
};
use crate::Result;
use crate::error::{corrupt, unsupported};
use crate::model::{Activation, LinearInput, ModelConfig, Rope, RopeScaling};
use crate::quant::ternary::CHUNK_COLS;

/// What sets the families apart.
struct Family {
    activation: &'static str,
    sub_norms: bool,
    qk_norm: bool,
    /// Master weights that are always quantised while loading (1bitLLM).
    master: bool,
    norm_eps: f64,
    theta: f64,
    context: u64,
    head_dim: Option<u64>,
}

fn family(architecture: &str) -> Option<Family> {
    let llama = Family {
        activation: "silu",
        sub_norms: false,
        qk_norm: false,
        master: false,
        norm_eps: 1e-6,
        theta: 1e4,
        context: 2048,
        head_dim: None,
    };
    Some(match architecture {
        "BitNetForCausalLM" => {
            Family { activation: "relu2", sub_norms: true, norm_eps: 1e-5, theta: 5e5, ..llama }
        }
        "BitnetForCausalLM" => Family { sub_norms: true, master: true, ..llama },
        "LlamaForCausalLM" => llama,
        "Qwen3ForCausalLM" => Family { qk_norm: true, context: 32768, head_dim: Some(128), ..llama },
        _ => return None,
    })
}

/// The architecture that a `config.json` names.
pub(super) fn architecture(config: &Value) -> Result<String> {
    if let Some(name) = config["architectures"][0].as_str() {
        return Ok(name.to_owned());
    }
    Ok(match config["model_type"].as_str() {
        Some("bitnet") => "BitNetForCausalLM".to_owned(),
        Some("llama") => "LlamaForCausalLM".to_owned(),
        Some("qwen3") => "Qwen3ForCausalLM".to_owned(),
        Some(other) => other.to_owned(),
        None => {
            let told = config["error"].as_str().map(|error| format!(" (it says {error:?})"));
            return Err(corrupt!(
                "config.json names no model architecture{}: it must be the model's own config.json",
                told.unwrap_or_default()
            ));
        }
    })
}

#[derive(Deserialize)]
struct Config {
    vocab_size: u64,
    hidden_size: u64,
    intermediate_size: u64,
    num_hidden_layers: u64,
    num_attention_heads: u64,
    num_key_value_heads: Option<u64>,
    head_dim: Option<u64>,
    hidden_act: Option<String>,
    max_position_embeddings: Option<u64>,
    rms_norm_eps: Option<f64>,
    rope_theta: Option<f64>,
    rope_scaling: Option<RopeOptions>,
    rope_parameters: Option<RopeOptions>,
    partial_rotary_factor: Option<f64>,
    tie_word_embeddings: Option<bool>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    use_sliding_window: Option<bool>,
    quantization_config: Option<Value>,
    /// MLX's own name for it.
    quantization: Option<Value>,
}

#[derive(Deserialize, Default)]
struct RopeOptions {
    rope_type: Option<String>,
    /// The older name of `rope_type`.
    r#type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f32>,
    original_max_position_embeddings: Option<u64>,
    beta_fast: Option<f32>,
    beta_slow: Option<f32>,
    attention_factor: Option<f32>,
    low_freq_factor: Option<f32>,
    high_freq_factor: Option<f32>,
    mscale: Option<f32>,
    mscale_all_dim: Option<f32>,
    truncate: Option<bool>,
    partial_rotary_factor: Option<f64>,
}

/// Reads the model's shape and options.
///
/// # Errors
/// `unsupported_format` for other architectures and options, `corrupt_file` for dimensions that cannot
/// be.
pub(super) fn model_spec(json: &Value) -> Result<ModelSpec> {
    let architecture = architecture(json)?;
    let family = family(&architecture).ok_or_else(|| spec::unsupported_architecture(&architecture))?;
    let raw = Config::deserialize(json).map_err(|error| corrupt!("config.json: {error}"))?;
    refuse_unsupported(&raw)?;

    let hidden_size = dimension("hidden_size", raw.hidden_size, MAX_WIDTH)?;
    let num_heads = dimension("num_attention_heads", raw.num_attention_heads, MAX_HEADS)?;
    let head_dim = match raw.head_dim.or(family.head_dim) {
        Some(head_dim) => dimension("head_dim", head_dim, MAX_HEAD_DIM)?,
        None if hidden_size.is_multiple_of(num_heads) => hidden_size / num_heads,
        None => {
            return Err(corrupt!("{num_heads} heads do not divide the width {hidden_size}"));
        }
    };
    let max_context = raw.max_position_embeddings.unwrap_or(family.context);
    let quantization = quantization(&raw, family.master)?;
    let linear_input = match quantization {
        Quantization::Packed { .. } | Quantization::Master { .. } => LinearInput::Int8,
        Quantization::None | Quantization::Mlx { .. } => LinearInput::Float,
    };
    let config = ModelConfig {
        vocab_size: dimension("vocab_size", raw.vocab_size, MAX_VOCAB)?,
        hidden_size,
        intermediate_size: dimension("intermediate_size", raw.intermediate_size, MAX_WIDTH)?,
        num_layers: dimension("num_hidden_layers", raw.num_hidden_layers, MAX_LAYERS)?,
        num_heads,
        num_kv_heads: match raw.num_key_value_heads {
            Some(heads) => dimension("num_key_value_heads", heads, MAX_HEADS)?,
            None => num_heads,
        },
        head_dim,
        max_context: dimension("max_position_embeddings", max_context, MAX_CONTEXT)?,
        norm_eps: raw.rms_norm_eps.unwrap_or(family.norm_eps) as f32,
        activation: activation(raw.hidden_act.as_deref().unwrap_or(family.activation))?,
        rope: rope(&raw, family.theta, max_context)?,
        sub_norms: family.sub_norms,
        qk_norm: family.qk_norm,
        linear_input,
        architecture,
    };
    spec::check(&config)?;
    Ok(ModelSpec {
        ternary_vocabulary: family.qk_norm,
        config,
        tied: match raw.tie_word_embeddings {
            Some(true) => Tied::Yes,
            Some(false) => Tied::No,
            None => Tied::IfAbsent,
        },
        quantization,
        interleaved_rope: false,
    })
}

fn refuse_unsupported(raw: &Config) -> Result<()> {
    let options = [
        ("attention_bias", raw.attention_bias),
        ("mlp_bias", raw.mlp_bias),
        ("use_sliding_window", raw.use_sliding_window),
    ];
    if let Some((name, _)) = options.iter().find(|(_, value)| *value == Some(true)) {
        return Err(unsupported!("config.json sets {name}, which Sterna does not support"));
    }
    Ok(())
}

fn activation(name: &str) -> Result<Activation> {
    match name {
        "relu2" => Ok(Activation::Relu2),
        "silu" | "swish" => Ok(Activation::Silu),
        other => Err(unsupported!("the activation {other:?} is not supported: Sterna runs relu2 and silu")),
    }
}

fn rope(raw: &Config, default_theta: f64, max_context: u64) -> Result<Rope> {
    let none = RopeOptions::default();
    let options = raw.rope_scaling.as_ref().or(raw.rope_parameters.as_ref()).unwrap_or(&none);
    let nested_theta = [&raw.rope_parameters, &raw.rope_scaling];
    let nested_theta = nested_theta.iter().find_map(|options| options.as_ref()?.rope_theta);
    let partial = raw.partial_rotary_factor.or(options.partial_rotary_factor);
    if partial.is_some_and(|factor| factor != 1.0) {
        return Err(unsupported!(
            "config.json rotates only a part of each head, which Sterna does not support"
        ));
    }
    let theta = raw.rope_theta.or(nested_theta).unwrap_or(default_theta) as f32;
    Ok(Rope { theta, scaling: scaling(options, max_context)? })
}

fn scaling(options: &RopeOptions, max_context: u64) -> Result<RopeScaling> {
    let kind = options.rope_type.as_deref().or(options.r#type.as_deref()).unwrap_or("default");
    let needed = |value: Option<f32>, name: &str| {
        value.ok_or_else(|| corrupt!("the {kind} rope scaling of config.json has no {name}"))
    };
    let original = options.original_max_position_embeddings.unwrap_or(max_context);
    let original_context = dimension("original_max_position_embeddings", original, MAX_CONTEXT);
    match kind {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear { factor: needed(options.factor, "factor")? }),
        "yarn" => {
            let variant = options.mscale.is_some() || options.mscale_all_dim.is_some();
            if variant || options.truncate == Some(false) {
                return Err(unsupported!(
                    "the yarn rope scaling of config.json uses mscale or truncate, which Sterna does not \
                     support"
                ));
            }
            Ok(RopeScaling::Yarn {
                factor: needed(options.factor, "factor")?,
                original_context: original_context?,
                beta_fast: options.beta_fast.unwrap_or(32.0),
                beta_slow: options.beta_slow.unwrap_or(1.0),
                attention_factor: options.attention_factor,
            })
        }
        "llama3" => Ok(RopeScaling::Llama3 {
            factor: needed(options.factor, "factor")?,
            low_freq_factor: needed(options.low_freq_factor, "low_freq_factor")?,
            high_freq_factor: needed(options.high_freq_factor, "high_freq_factor")?,
            original_context: original_context?,
        }),
        other => Err(unsupported!(
            "the rope scaling {other:?} is not supported: Sterna runs linear, yarn and llama3 scaling"
        )),
    }
}

#[derive(Deserialize)]
struct BitnetOptions {
    linear_class: Option<String>,
    quantization_mode: Option<String>,
    use_rms_norm: Option<bool>,
    modules_to_not_convert: Option<Vec<String>>,
}

fn quantization(raw: &Config, master: bool) -> Result<Quantization> {
    if let Some(mlx) = &raw.quantization {
        return mlx_quantization(mlx);
    }
    let Some(json) = &raw.quantization_config else {
        return Ok(if master { Quantization::Master { skipped: None } } else { Quantization::None });
    };
    match json["quant_method"].as_str() {
        Some("bitnet") => {}
        None if json["bits"].is_u64() && json["group_size"].is_u64() => {
            return mlx_quantization(json);
        }
        other => {
            return Err(unsupported!(
                "the quantization method {:?} is not supported: Sterna reads \"bitnet\" and 2-bit MLX",
                other.unwrap_or("(none)")
            ));
        }
    }
    let options = BitnetOptions::deserialize(json)
        .map_err(|error| corrupt!("quantization_config of config.json: {error}"))?;
    if options.use_rms_norm == Some(true) {
        return Err(unsupported!(
            "config.json sets use_rms_norm (a norm before every linear), which Sterna does not support"
        ));
    }
    let skipped = options.modules_to_not_convert;
    let mode = options.quantization_mode.as_deref().unwrap_or("offline");
    match (options.linear_class.as_deref().unwrap_or("bitlinear"), mode) {
        // transformers looks at the mode for autobitlinear only.
        ("bitlinear", _) => Ok(Quantization::Packed { divides: true, skipped }),
        ("autobitlinear", "offline") => Ok(Quantization::Packed { divides: false, skipped }),
        ("autobitlinear", "online") => Ok(Quantization::Master { skipped }),
        (class, mode) => Err(unsupported!(
            "the bitnet quantization with linear_class {class:?} and quantization_mode {mode:?} is not \
             supported"
        )),
    }
}

fn mlx_quantization(json: &Value) -> Result<Quantization> {
    let (bits, group) = (json["bits"].as_u64(), json["group_size"].as_u64());
    let affine = json["mode"].as_str().is_none_or(|mode| mode == "affine");
    let mixed = json.as_object().is_some_and(|options| options.values().any(Value::is_object));
    let group = group.and_then(|group| usize::try_from(group).ok()).unwrap_or(0);
    let fits = group > 0 && group.is_multiple_of(CHUNK_COLS) && group <= MAX_WIDTH;
    if bits != Some(2) || !affine || mixed || !fits {
        return Err(unsupported!(
            "this MLX quantization is not supported: Sterna reads affine 2-bit weights with one group size \
             throughout"
        ));
    }
    Ok(Quantization::Mlx { group })
}
