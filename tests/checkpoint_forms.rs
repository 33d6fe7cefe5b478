//! What the fixtures do not show: options, aliases and encodings on small files built here.

#![cfg(not(target_arch = "wasm32"))]

mod checkpoint_support;

use checkpoint_support::*;
use sterna::checkpoint::{I2sLayout, ReadOptions};
use sterna::model::{LayerRole, LinearInput, Role, RopeScaling};
use sterna::quant::{DenseEncoding, KernelScales, Matrix};

fn ternary(at: usize) -> f32 {
    [-1.0, 0.0, 1.0][at * 7 / 3 % 3]
}

#[test]
fn query_and_key_rows_of_a_llama_are_put_back() {
    let mut file = GgufFile::tiny_llama();
    for (name, rows) in [("blk.0.attn_q.weight", 32), ("blk.0.attn_k.weight", 16)] {
        // Row r is filled with r.
        file.tensor(name).data = (0..rows * 32).flat_map(|at| ((at / 32) as f32).to_le_bytes()).collect();
    }
    let loaded = read(&file.files()).unwrap();
    for (role, rows) in [(LayerRole::Query, 32), (LayerRole::Key, 16)] {
        let values = loaded.values(Role::Layer(0, role));
        for row in 0..rows {
            let (head, i, s) = (row / 16, row % 16 % 8, row % 16 / 8);
            assert_eq!(values[row * 32], (head * 16 + 2 * i + s) as f32, "{role:?} {row}");
        }
    }
}

#[test]
fn float_weights_with_ternary_values_are_kept_as_codes() {
    let mut file = GgufFile::tiny_llama();
    // One scale a row; the first row is all zero.
    let value = |at: usize| ternary(at) * (at / 32) as f32 * 0.25;
    file.tensor("blk.0.ffn_up.weight").data = (0..64 * 32).flat_map(|at| value(at).to_le_bytes()).collect();
    // Ternary but for the last value.
    let mut down: Vec<f32> = (0..64 * 32).map(|at| ternary(at) * 0.5).collect();
    down[64 * 32 - 1] = 0.3;
    file.tensor("blk.0.ffn_down.weight").data = down.iter().flat_map(|v| v.to_le_bytes()).collect();
    let loaded = read(&file.files()).unwrap();
    let scales: Vec<f32> = (0..64).map(|row| row as f32 * 0.25).collect();
    assert_eq!(loaded.scales(Role::Layer(0, LayerRole::Up)), &KernelScales::Row(scales));
    let wanted: Vec<f32> = (0..64 * 32).map(value).collect();
    assert_eq!(loaded.values(Role::Layer(0, LayerRole::Up)), wanted);
    assert!(matches!(loaded.matrix(Role::Layer(0, LayerRole::Down)), Matrix::Dense(_)));
    assert_eq!(loaded.values(Role::Layer(0, LayerRole::Down)), down);
    assert_eq!(loaded.checkpoint.config.linear_input, LinearInput::Float);
}

#[test]
fn a_scale_tensor_multiplies_ternary_and_dense_weights() {
    let mut file = GgufFile::tiny_llama();
    file.tensor("blk.0.attn_v.weight").data = (0..16 * 32).flat_map(|at| ternary(at).to_le_bytes()).collect();
    file.add_f32("blk.0.attn_v.scale", &[1], |_| 0.25);
    file.add_f32("blk.0.ffn_gate.scale", &[1], |_| 2.0);
    let loaded = read(&file.files()).unwrap();
    assert_eq!(loaded.scales(Role::Layer(0, LayerRole::Value)), &KernelScales::Tensor(0.25));
    let gate: Vec<f32> = (0..64 * 32).map(|at| at as f32 * 2.0).collect();
    assert_eq!(loaded.values(Role::Layer(0, LayerRole::Gate)), gate);
}

/// `I2_S` bytes of codes in runs of `run`.
fn i2_s(codes: &[u8], run: usize, scale: f32) -> Vec<u8> {
    let mut bytes: Vec<u8> = codes
        .chunks_exact(4 * run)
        .flat_map(|c| {
            (0..run).map(move |p| c[p] << 6 | c[p + run] << 4 | c[p + 2 * run] << 2 | c[p + 3 * run])
        })
        .collect();
    bytes.extend(scale.to_le_bytes());
    bytes.extend([0xaa; 28]);
    bytes
}

#[test]
fn i2_s_blocks_may_straddle_rows_and_come_in_the_arm_layout() {
    for (layout, run) in [(I2sLayout::X86, 32), (I2sLayout::Arm, 16)] {
        let mut file = GgufFile::tiny_llama();
        let codes: Vec<u8> = (0..64 * 32).map(|at| (ternary(at) + 1.0) as u8).collect();
        let tensor = file.tensor("blk.0.ffn_up.weight");
        (tensor.type_id, tensor.data) = (36, i2_s(&codes, run, 0.75));
        let options = ReadOptions { i2s_layout: layout, ..Default::default() };
        for size in [1, 33, usize::MAX] {
            let loaded = read_with(&file.files(), options.clone(), true, |_| size).unwrap();
            let wanted: Vec<f32> = (0..64 * 32).map(|at| ternary(at) * 0.75).collect();
            assert_eq!(loaded.values(Role::Layer(0, LayerRole::Up)), wanted);
            assert_eq!(loaded.checkpoint.config.linear_input, LinearInput::Int8);
        }
    }
}

#[test]
fn quantised_dense_weights_keep_their_blocks() {
    let mut file = GgufFile::tiny_llama();
    let block = [&[0x00, 0x38][..], &[3; 32]].concat(); // d = 0.5
    let tensor = file.tensor("token_embd.weight");
    (tensor.type_id, tensor.data) = (8, block.repeat(8));
    let loaded = read(&file.files()).unwrap();
    let Matrix::Dense(matrix) = loaded.matrix(Role::Embedding) else { panic!("not dense") };
    assert_eq!(matrix.encoding(), DenseEncoding::Q8_0);
    assert_eq!(loaded.values(Role::Embedding), vec![1.5; 8 * 32]);
}

#[test]
fn rope_factors_become_part_of_the_config() {
    let mut file = GgufFile::tiny_llama();
    file.add_f32("rope_freqs.weight", &[8], |at| 1.0 + at as f32);
    let loaded = read(&file.files()).unwrap();
    let factors = (1..=8).map(|factor| factor as f32).collect();
    assert_eq!(loaded.checkpoint.config.rope.scaling, RopeScaling::Factors { factors });
    assert!(!loaded.tensors.contains_key(&Role::RopeFactors));

    file.tensor("rope_freqs.weight").data[..4].fill(0);
    assert_error(&error_of(&file.files()), "corrupt_file", &["rope_freqs"]);
    file.tensor("rope_freqs.weight").data[..4].copy_from_slice(&1f32.to_le_bytes());
    file.set("llama.rope.scaling.type", Meta::Text("linear".into()));
    file.set("llama.rope.scaling.factor", Meta::F32(2.0));
    assert_error(&error_of(&file.files()), "unsupported_format", &["rope_freqs"]);
}

#[test]
fn an_output_tensor_is_a_head() {
    let mut file = GgufFile::tiny_llama();
    assert!(!read(&file.files()).unwrap().tensors.contains_key(&Role::Head));
    file.add_f32("output.weight", &[32, 8], |at| at as f32 + 0.5);
    assert_eq!(read(&file.files()).unwrap().values(Role::Head)[1], 1.5);
}

#[test]
fn control_tokens_that_end_a_turn_stop_generation() {
    let mut file = GgufFile::tiny_llama();
    assert_eq!(read(&file.files()).unwrap().checkpoint.special.eos, [7], "<|im_end|> is a control token");
    file.set("tokenizer.ggml.eos_token_id", Meta::U32(2));
    file.set("tokenizer.ggml.eot_token_id", Meta::U32(3));
    assert_eq!(read(&file.files()).unwrap().checkpoint.special.eos, [2, 3, 7]);
    file.set("tokenizer.ggml.token_type", Meta::Ints(vec![1; 8]));
    assert_eq!(read(&file.files()).unwrap().checkpoint.special.eos, [2, 3]);
}

/// A one-layer checkpoint of Hugging Face in F32.
fn hugging_face(config: &str, renamed: &[(&str, &str)]) -> Vec<File> {
    let shapes: [(&str, &[usize]); 13] = [
        ("model.embed_tokens.weight", &[8, 32]),
        ("model.norm.weight", &[32]),
        ("model.layers.0.input_layernorm.weight", &[32]),
        ("model.layers.0.self_attn.q_proj.weight", &[32, 32]),
        ("model.layers.0.self_attn.k_proj.weight", &[16, 32]),
        ("model.layers.0.self_attn.v_proj.weight", &[16, 32]),
        ("model.layers.0.self_attn.attn_sub_norm.weight", &[32]),
        ("model.layers.0.self_attn.o_proj.weight", &[32, 32]),
        ("model.layers.0.post_attention_layernorm.weight", &[32]),
        ("model.layers.0.mlp.gate_proj.weight", &[64, 32]),
        ("model.layers.0.mlp.up_proj.weight", &[64, 32]),
        ("model.layers.0.mlp.ffn_sub_norm.weight", &[64]),
        ("model.layers.0.mlp.down_proj.weight", &[32, 64]),
    ];
    let plain = config.contains("LlamaForCausalLM");
    let tensors: Vec<_> = shapes
        .iter()
        .filter(|(name, _)| !plain || !name.contains("sub_norm"))
        .map(|(name, shape)| {
            let name = renamed.iter().find(|(from, _)| from == name).map_or(*name, |(_, to)| to);
            let count: usize = shape.iter().product();
            (name, "F32", *shape, (0..count).flat_map(|at| (at as f32 - 100.0).to_le_bytes()).collect())
        })
        .collect();
    vec![
        ("config.json".into(), config.as_bytes().to_vec()),
        ("model.safetensors".into(), safetensors(&tensors)),
    ]
}

fn config(architecture: &str, more: &str) -> String {
    format!(
        r#"{{"architectures": ["{architecture}"], "vocab_size": 8, "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1{more}}}"#
    )
}

#[test]
fn checkpoints_of_1bitllm_are_quantised_while_loading() {
    let renamed = [
        ("model.layers.0.self_attn.attn_sub_norm.weight", "model.layers.0.self_attn.inner_attn_ln.weight"),
        ("model.layers.0.mlp.ffn_sub_norm.weight", "model.layers.0.mlp.ffn_layernorm.weight"),
    ];
    let config = config("BitnetForCausalLM", r#", "hidden_act": "silu", "weight_bits": 1, "input_bits": 8"#);
    let loaded = read(&hugging_face(&config, &renamed)).unwrap();
    assert_eq!(loaded.checkpoint.config.linear_input, LinearInput::Int8);
    assert!(loaded.checkpoint.config.sub_norms);
    assert!(matches!(loaded.scales(Role::Layer(0, LayerRole::Query)), KernelScales::Tensor(_)));
    assert!(matches!(loaded.matrix(Role::Embedding), Matrix::Dense(_)));
    assert_eq!(loaded.values(Role::Layer(0, LayerRole::FfnSubNorm))[0], -100.0);
}

#[test]
fn modules_to_not_convert_stay_floats() {
    let quantization = r#", "quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear",
        "quantization_mode": "online", "modules_to_not_convert": ["lm_head", "o_proj", "model.layers.0.mlp.up"]}"#;
    let loaded = read(&hugging_face(&config("BitNetForCausalLM", quantization), &[])).unwrap();
    for (role, dense) in [(LayerRole::Query, false), (LayerRole::AttnOutput, true), (LayerRole::Up, true)] {
        let is_dense = matches!(loaded.matrix(Role::Layer(0, role)), Matrix::Dense(_));
        assert_eq!(is_dense, dense, "{role:?}");
    }
}

#[test]
fn rope_options_are_read_from_old_and_new_configs() {
    let scaling = |more: &str| {
        let loaded = read(&hugging_face(&config("LlamaForCausalLM", more), &[])).unwrap();
        (loaded.checkpoint.config.rope.theta, loaded.checkpoint.config.rope.scaling)
    };
    assert_eq!(scaling(""), (10_000.0, RopeScaling::None));
    let linear = r#", "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}"#;
    assert_eq!(scaling(linear), (5e5, RopeScaling::Linear { factor: 2.0 }));
    let llama3 = r#", "rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}"#;
    let wanted = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 8192,
    };
    assert_eq!(scaling(llama3), (5e5, wanted));
    assert_eq!(scaling(r#", "rope_parameters": {"rope_type": "default", "rope_theta": 7e3}"#).0, 7e3);
}

#[test]
fn sides_of_the_tokenizer_are_found() {
    let mut files = hugging_face(&config("LlamaForCausalLM", r#", "eos_token_id": [1, 2, 99]"#), &[]);
    let weights = files.pop().unwrap();
    let side = [
        ("generation_config.json", r#"{"eos_token_id": 3, "do_sample": false, "temperature": 0.6}"#),
        (
            "tokenizer.json",
            r#"{"added_tokens": [{"id": 5, "content": "<|eot_id|>", "special": true},
                {"id": 6, "content": "<|im_end|>", "special": false}]}"#,
        ),
        (
            "tokenizer_config.json",
            r#"{"bos_token": {"content": "<s>"}, "add_bos_token": false,
                "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}"#,
        ),
        ("special_tokens_map.json", r#"{"eos_token": "</s>"}"#),
    ];
    files.extend(side.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())));
    files.push(weights.clone());
    let checkpoint = read(&files).unwrap().checkpoint;
    assert_eq!(checkpoint.special.eos, [1, 2, 3, 5]);
    assert_eq!(checkpoint.special.add_bos, Some(false));
    assert_eq!(checkpoint.template.jinja.as_deref(), Some("d"));
    assert_eq!(checkpoint.template.bos_token.as_deref(), Some("<s>"));
    assert_eq!(checkpoint.template.eos_token.as_deref(), Some("</s>"));
    assert_eq!(checkpoint.defaults.temperature, Some(0.0));

    files.pop();
    files.push(("chat_template.jinja".into(), b"j".to_vec()));
    files.push(weights);
    assert_eq!(read(&files).unwrap().checkpoint.template.jinja.as_deref(), Some("j"));
}

#[test]
fn a_header_of_megabytes_is_parsed_once_however_small_the_pieces() {
    let mut file = GgufFile::tiny_llama();
    file.set("tokenizer.ggml.merges", Meta::Texts((0..280_000).map(|n| format!("{n} b")).collect()));
    let files = file.files();
    let start = std::time::Instant::now();
    let loaded = read_with(&files, ReadOptions::default(), true, |_| 1).unwrap();
    let Some(sterna::text::TokenizerSource::Gguf(vocab)) = loaded.checkpoint.tokenizer else {
        panic!("no vocabulary")
    };
    assert_eq!((vocab.merges.len(), vocab.merges[279_999].as_str()), (280_000, "279999 b"));
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
