//! Files that lie, break off, or belong to other programs: each gives its typed error.

#![cfg(not(target_arch = "wasm32"))]

mod checkpoint_support;

use checkpoint_support::*;
use sterna::checkpoint::{CheckpointReader, ReadOptions};

/// Applies a change to a sound file and returns the error it gives.
fn broken(change: impl FnOnce(&mut GgufFile)) -> sterna::Error {
    let mut file = GgufFile::tiny_llama();
    change(&mut file);
    error_of(&file.files())
}

fn named(name: &str, bytes: impl Into<Vec<u8>>) -> Vec<File> {
    vec![(name.into(), bytes.into())]
}

#[test]
fn the_sound_file_loads() {
    read(&GgufFile::tiny_llama().files()).unwrap();
}

#[test]
fn a_gguf_file_cut_anywhere_is_reported_as_cut() {
    let file = GgufFile::tiny_llama();
    let (whole, _) = file.write();
    let mut last = 0;
    for (name, tensor) in file.tensors.iter().map(|tensor| (&tensor.name, tensor.data.len())) {
        assert!(tensor > 0, "{name}");
        last = tensor.next_multiple_of(32) - tensor;
    }
    for length in (0..whole.len() - last).rev().step_by(7).chain(0..600) {
        let error = error_of(&named("model.gguf", &whole[..length]));
        assert_eq!(error.code(), "corrupt_file", "{length}: {error}");
    }
    let error = error_of(&named("model.gguf", &whole[..whole.len() - 100]));
    assert_error(&error, "corrupt_file", &["cut short", "100 are missing"]);
}

#[test]
fn a_safetensors_file_cut_anywhere_is_reported_as_cut() {
    let mut files = folder("bitnet-c-silu-packed");
    let whole = files.pop().unwrap().1;
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let around = [0, 1, 7, 8, 9, 300, header - 1, header, header + 1, whole.len() / 2, whole.len() - 1];
    for length in around {
        files.push(("model.safetensors".into(), whole[..length].to_vec()));
        let error = error_of(&files);
        assert_eq!(error.code(), "corrupt_file", "{length}: {error}");
        files.pop();
    }
    files.push(("model.safetensors".into(), whole[..whole.len() - 10].to_vec()));
    assert_error(&error_of(&files), "corrupt_file", &["cut short", "10 are missing"]);
}

#[test]
fn a_fixture_cut_at_every_boundary_is_reported_as_cut() {
    let whole = fixture("gguf/bitnet-c-silu-i2_s.gguf");
    let mut reader = CheckpointReader::new(ReadOptions::default());
    reader.begin_file("model.gguf", Some(whole.len() as u64)).unwrap();
    reader.push(&whole).unwrap();
    for tensor in reader.inspect().unwrap().tensors {
        for cut in [tensor.offset, tensor.offset + 1, tensor.offset + tensor.bytes - 1] {
            let error = error_of(&named("model.gguf", &whole[..cut as usize]));
            assert_error(&error, "corrupt_file", &["cut short"]);
        }
    }
}

#[test]
fn counts_and_lengths_that_lie_are_refused() {
    for counts in [(u64::MAX, 12), (11, u64::MAX), (1 << 40, 12), (11, 1 << 20), (100_000, 12), (12, 12)] {
        let error = broken(|file| file.counts = Some(counts));
        assert_eq!(error.code(), "corrupt_file", "{counts:?}: {error}");
    }
    let lengths = [u64::MAX, 1 << 63, 1 << 40, 1 << 30];
    for length in lengths {
        let text = length.to_le_bytes().to_vec();
        let error = broken(|file| file.set("x", Meta::Raw(8, text.clone())));
        assert_error(&error, "corrupt_file", &[]);
        for element in [0u32, 5, 8, 10] {
            let array = [element.to_le_bytes().to_vec(), text.clone()].concat();
            let error = broken(|file| file.set("tokenizer.ggml.x", Meta::Raw(9, array)));
            assert_error(&error, "corrupt_file", &[]);
        }
    }
    let nested = [9u32.to_le_bytes().to_vec(), 1u64.to_le_bytes().to_vec()].concat();
    assert_error(&broken(|file| file.set("x", Meta::Raw(9, nested))), "unsupported_format", &["arrays"]);
    assert_error(
        &broken(|file| file.set("x", Meta::Raw(13, vec![0; 8]))),
        "corrupt_file",
        &["value type 13"],
    );
    let numbers = Meta::Ints(vec![1, 2]);
    let error = broken(|file| file.set("tokenizer.ggml.tokens", numbers));
    assert_error(&error, "corrupt_file", &["tokenizer.ggml.tokens"]);
}

#[test]
fn shapes_that_lie_are_refused() {
    let shapes: [&[u64]; 9] = [
        &[0, 32],
        &[32, 0],
        &[u64::MAX, 2],
        &[1 << 63, 2],
        &[u64::MAX, u64::MAX],
        &[33, 32],
        &[32, 31],
        &[1024],
        &[32, 32, 1, 1],
    ];
    for shape in shapes {
        let error = broken(|file| file.tensor("blk.0.attn_q.weight").dims = shape.to_vec());
        assert_error(&error, "corrupt_file", &["blk.0.attn"]);
    }
    for dims in [vec![], vec![1; 5]] {
        let error = broken(|file| file.tensor("blk.0.attn_q.weight").dims = dims);
        assert_error(&error, "corrupt_file", &["dimensions"]);
    }
}

#[test]
fn offsets_that_lie_are_refused() {
    for offset in [0, 1, 33, 1 << 20, u64::MAX, u64::MAX - 31, 1 << 63] {
        let error = broken(|file| file.tensor("blk.0.attn_q.weight").offset = Some(offset));
        assert_error(&error, "corrupt_file", &["blk.0.attn_q.weight", "offset"]);
    }
    for alignment in [0u32, 3, 48, 1 << 31] {
        let error = broken(|file| file.set("general.alignment", Meta::U32(alignment)));
        assert_error(&error, "corrupt_file", &["alignment"]);
    }
    let error = broken(|file| file.set("general.alignment", Meta::Text("32".into())));
    assert_error(&error, "corrupt_file", &["alignment"]);
}

#[test]
fn other_alignments_and_version_2_load() {
    for alignment in [8, 64, 4096] {
        let mut file = GgufFile::tiny_llama();
        file.set("general.alignment", Meta::U32(alignment));
        file.alignment = alignment as usize;
        file.version = 2;
        let loaded = read(&file.files()).unwrap().contents();
        assert!(loaded == read(&GgufFile::tiny_llama().files()).unwrap().contents());
    }
}

#[test]
fn dimensions_that_cannot_be_are_refused() {
    let cases = [
        ("embedding_length", 0),
        ("embedding_length", u32::MAX),
        ("feed_forward_length", 0),
        ("feed_forward_length", 65),
        ("block_count", 0),
        ("block_count", u32::MAX),
        ("context_length", 0),
        ("attention.head_count", 0),
        ("attention.head_count", 3),
        ("attention.head_count_kv", 0),
        ("attention.head_count_kv", 3),
        ("attention.key_length", 15),
        ("attention.key_length", 0),
        ("vocab_size", 0),
        ("vocab_size", u32::MAX),
        ("vocab_size", 7),
        ("vocab_size", 9),
    ];
    for (key, value) in cases {
        let error = broken(|file| file.set(&format!("llama.{key}"), Meta::U32(value)));
        assert_eq!(error.code(), "corrupt_file", "{key} = {value}: {error}");
    }
    for (key, value) in [("attention.layer_norm_rms_epsilon", f32::NAN), ("rope.freq_base", -1.0)] {
        let error = broken(|file| file.set(&format!("llama.{key}"), Meta::F32(value)));
        assert_error(&error, "corrupt_file", &["damaged"]);
    }
    let negative = Meta::Raw(5, (-32i32).to_le_bytes().to_vec());
    assert_error(&broken(|file| file.set("llama.embedding_length", negative)), "corrupt_file", &["-32"]);
    assert_error(&broken(|file| file.remove("llama.block_count")), "corrupt_file", &["llama.block_count"]);
}

#[test]
fn what_sterna_does_not_run_is_refused_by_name() {
    let arch = |name: &str| Meta::Text(name.into());
    let error = broken(|file| file.set("general.architecture", arch("minicpm")));
    assert_error(&error, "unsupported_format", &["minicpm", "bitnet-b1.58", "qwen3", "LlamaForCausalLM"]);
    assert_error(&broken(|file| file.version = 1), "unsupported_format", &["version 1"]);
    assert_error(&broken(|file| file.version = 4), "unsupported_format", &["version 4"]);
    assert_error(&broken(|file| file.version = 3u32.swap_bytes()), "unsupported_format", &["big-endian"]);
    let error = broken(|file| file.set("llama.expert_count", Meta::U32(8)));
    assert_error(&error, "unsupported_format", &["experts"]);
    let error = broken(|file| file.set("llama.rope.dimension_count", Meta::U32(8)));
    assert_error(&error, "unsupported_format", &["rope.dimension_count"]);
    let error = broken(|file| file.set("llama.rope.scaling.type", Meta::Text("longrope".into())));
    assert_error(&error, "unsupported_format", &["longrope"]);
    let error = broken(|file| file.set("llama.feed_forward_length", Meta::Ints(vec![64])));
    assert_error(&error, "unsupported_format", &["layer to layer"]);
    for (type_id, name) in [(38, "TL1"), (39, "TL2 or MXFP4"), (6, "Q5_0"), (77, "type 77")] {
        let error = broken(|file| file.tensor("blk.0.ffn_up.weight").type_id = type_id);
        assert_error(&error, "unsupported_format", &["blk.0.ffn_up.weight", name, "I2_S"]);
    }
    for name in ["blk.0.attn_q.bias", "blk.0.ffn_gate_exps.weight", "blk.0.attn_q_norm.weight", "x"] {
        let error = broken(|file| file.add_f32(name, &[32], |_| 1.0));
        assert_error(&error, "unsupported_format", &[name]);
    }
}

#[test]
fn missing_doubled_and_superfluous_tensors_are_refused() {
    let names: Vec<String> =
        GgufFile::tiny_llama().tensors.iter().map(|tensor| tensor.name.clone()).collect();
    for name in names {
        let error = broken(|file| file.tensors.retain(|tensor| tensor.name != name));
        assert_error(&error, "corrupt_file", &[&name]);
    }
    let error = broken(|file| file.add_f32("output_norm.weight", &[32], |_| 1.0));
    assert_error(&error, "corrupt_file", &["output_norm.weight", "twice"]);
    let error = broken(|file| file.metadata.push(("llama.block_count".into(), Meta::U32(1))));
    assert_error(&error, "corrupt_file", &["llama.block_count", "twice"]);
    let error = broken(|file| file.add_f32("blk.1.attn_norm.weight", &[32], |_| 1.0));
    assert_error(&error, "corrupt_file", &["blk.1.attn_norm.weight", "1 layers"]);
    let error = broken(|file| file.tensors.last_mut().unwrap().data.extend([0; 64]));
    assert_error(&error, "corrupt_file", &["goes on"]);
}

#[test]
fn scales_that_are_not_numbers_are_refused_by_tensor() {
    let nan = [0x00, 0x7e];
    let q8_0: Vec<u8> = (0..32).flat_map(|_| [&nan[..], &[1; 32]].concat()).collect();
    let error = broken(|file| {
        let tensor = file.tensor("blk.0.attn_q.weight");
        (tensor.type_id, tensor.data) = (8, q8_0);
    });
    assert_error(&error, "corrupt_file", &["blk.0.attn_q.weight", "scale"]);
    let i2_s = |scale: f32| [vec![0x55; 256], scale.to_le_bytes().to_vec(), vec![0; 28]].concat();
    for scale in [f32::NAN, f32::INFINITY] {
        let error = broken(|file| {
            let tensor = file.tensor("blk.0.attn_q.weight");
            (tensor.type_id, tensor.data) = (36, i2_s(scale));
        });
        assert_error(&error, "corrupt_file", &["blk.0.attn_q.weight", "scale"]);
    }
    let error =
        broken(|file| file.tensor("output_norm.weight").data[..4].copy_from_slice(&f32::NAN.to_le_bytes()));
    assert_error(&error, "corrupt_file", &["output_norm.weight"]);
}

#[test]
fn what_is_not_a_model_is_told_apart() {
    let cases: [(&str, &[u8], &str, &str); 10] = [
        ("m.gguf", b"", "corrupt_file", "empty"),
        ("m.gguf", b"<!DOCTYPE html><html><body>404</body></html>", "corrupt_file", "web page"),
        ("m.safetensors", b"\n <html>", "corrupt_file", "web page"),
        ("m.gguf", b"{\"error\":\"Repository not found\"}", "corrupt_file", "Repository not found"),
        (
            "m.gguf",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00",
            "corrupt_file",
            "git lfs pull",
        ),
        ("m.bin", b"PK\x03\x04rest of a zip", "unsupported_format", "PyTorch"),
        ("m.gguf", b"\x1f\x8b\x08 and so on", "unsupported_format", "gzip"),
        ("m.gguf", b"lmggold model of 2023", "unsupported_format", "2023"),
        ("m.gguf", b"GGML is not GGUF", "corrupt_file", "neither"),
        ("m.gguf", b"GG", "corrupt_file", "neither"),
    ];
    for (name, bytes, code, words) in cases {
        assert_error(&error_of(&named(name, bytes)), code, &[name, words]);
    }
    for name in ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors.index.json"] {
        assert_error(&error_of(&named(name, "<html>")), "corrupt_file", &[name, "web page"]);
        assert_error(&error_of(&named(name, "")), "corrupt_file", &[name, "empty"]);
    }
    assert_error(&error_of(&named("config.json", "{\"a\": 1")), "corrupt_file", &["config.json", "JSON"]);
    assert_error(&error_of(&named("config.json", "[]")), "corrupt_file", &["object"]);
    let index = "{\"weight_map\": {\"a\": \"../../secret.safetensors\"}}";
    assert_error(&error_of(&named("x.index.json", index)), "corrupt_file", &["secret"]);
    assert_error(&error_of(&named("x.index.json", "{}")), "corrupt_file", &["weight_map"]);
    assert_error(&error_of(&[]), "corrupt_file", &["no model weights"]);
}

const CONFIG: &str = r#"{"architectures": ["LlamaForCausalLM"], "vocab_size": 8, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
    "tie_word_embeddings": true}"#;

/// A one-layer Llama in safetensors whose config and header text are changed.
fn hugging_face(config: impl Fn(&str) -> String, header: impl Fn(&str) -> String) -> Vec<File> {
    let shapes: [(&str, &[usize]); 11] = [
        ("model.embed_tokens.weight", &[8, 32]),
        ("model.norm.weight", &[32]),
        ("model.layers.0.input_layernorm.weight", &[32]),
        ("model.layers.0.self_attn.q_proj.weight", &[32, 32]),
        ("model.layers.0.self_attn.k_proj.weight", &[16, 32]),
        ("model.layers.0.self_attn.v_proj.weight", &[16, 32]),
        ("model.layers.0.self_attn.o_proj.weight", &[32, 32]),
        ("model.layers.0.post_attention_layernorm.weight", &[32]),
        ("model.layers.0.mlp.gate_proj.weight", &[64, 32]),
        ("model.layers.0.mlp.up_proj.weight", &[64, 32]),
        ("model.layers.0.mlp.down_proj.weight", &[32, 64]),
    ];
    let tensors: Vec<_> = shapes
        .iter()
        .map(|(name, shape)| (*name, "BF16", *shape, vec![0; 2 * shape.iter().product::<usize>()]))
        .collect();
    let bytes = safetensors(&tensors);
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = header(std::str::from_utf8(&bytes[8..start]).unwrap());
    vec![
        ("config.json".into(), config(CONFIG).into_bytes()),
        ("model.safetensors".into(), safetensors_raw(&text, &bytes[start..])),
    ]
}

fn with_config(from: &str, to: &str) -> Vec<File> {
    assert!(CONFIG.contains(from), "{from}");
    hugging_face(|config| config.replace(from, to), str::to_owned)
}

fn with_header(from: &str, to: &str) -> Vec<File> {
    hugging_face(str::to_owned, |header| {
        assert!(header.contains(from), "{from}");
        header.replacen(from, to, 1)
    })
}

#[test]
fn safetensors_headers_that_lie_are_refused() {
    read(&hugging_face(str::to_owned, str::to_owned)).unwrap();
    let cases = [
        ("\"data_offsets\":[0,512]", "\"data_offsets\":[0,511]", "model.embed_tokens.weight"),
        ("\"data_offsets\":[0,512]", "\"data_offsets\":[512,0]", "model.embed_tokens.weight"),
        ("\"data_offsets\":[0,512]", "\"data_offsets\":[-1,512]", "header"),
        ("\"data_offsets\":[0,512]", "\"data_offsets\":[2,514]", "overlap or leave a hole"),
        ("\"data_offsets\":[512,576]", "\"data_offsets\":[448,512]", "overlap or leave a hole"),
        ("\"data_offsets\":[0,512]", "\"data_offsets\":[18446744073709551103,18446744073709551615]", "bytes"),
        ("\"shape\":[8, 32]", "\"shape\":[9, 32]", "model.embed_tokens.weight"),
        ("\"shape\":[8, 32]", "\"shape\":[32, 8]", "model.embed_tokens.weight"),
        ("\"shape\":[8, 32]", "\"shape\":[256]", "model.embed_tokens.weight"),
        ("\"shape\":[8, 32]", "\"shape\":[4294967296,4294967296,256]", "model.embed_tokens.weight"),
        ("\"dtype\":\"BF16\"", "\"dtype\":\"F32\"", "model.embed_tokens.weight"),
        ("\"dtype\":\"BF16\"", "\"dtype\":\"F17\"", "F17"),
        ("self_attn.k_proj", "self_attn.v_proj", "twice"),
        ("\"dtype\":", "dtype:", "header"),
    ];
    for (from, to, words) in cases {
        assert_error(&error_of(&with_header(from, to)), "corrupt_file", &[words]);
    }
    let missing = with_header("model.layers.0.self_attn.k_proj.weight", "model.rotary_emb.inv_freq");
    assert_error(&error_of(&missing), "corrupt_file", &["self_attn.k_proj"]);
    let biased = with_header("model.norm.weight", "model.norm.bias");
    assert_error(&error_of(&biased), "unsupported_format", &["model.norm.bias"]);
    let huge = [u64::MAX, 1 << 40, 100_000_001];
    for length in huge {
        let files = vec![
            ("config.json".into(), CONFIG.as_bytes().to_vec()),
            ("model.safetensors".into(), [&length.to_le_bytes()[..], b"{}", &[0; 400]].concat()),
        ];
        assert_error(&error_of(&files), "corrupt_file", &[]);
    }
    let mut longer = hugging_face(str::to_owned, str::to_owned);
    longer[1].1.push(0);
    assert_error(&error_of(&longer), "corrupt_file", &[]);
    let alone = hugging_face(str::to_owned, str::to_owned).split_off(1);
    assert_error(&error_of(&alone), "corrupt_file", &["config.json"]);
}

#[test]
fn hugging_face_configs_are_checked() {
    let corrupt = [
        ("\"hidden_size\": 32", "\"hidden_size\": 0"),
        ("\"hidden_size\": 32", "\"hidden_size\": -32"),
        ("\"hidden_size\": 32", "\"hidden_size\": 33"),
        ("\"hidden_size\": 32", "\"hidden_size\": 18446744073709551615"),
        ("\"hidden_size\": 32", "\"hidden_size\": \"32\""),
        ("\"hidden_size\": 32,", ""),
        ("\"vocab_size\": 8", "\"vocab_size\": 9"),
        ("\"num_key_value_heads\": 1", "\"num_key_value_heads\": 3"),
        ("\"num_key_value_heads\": 1", "\"head_dim\": 15"),
        ("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2"),
        ("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false"),
        ("\"tie_word_embeddings\": true", "\"rms_norm_eps\": -1"),
        ("\"architectures\": [\"LlamaForCausalLM\"],", ""),
    ];
    for (from, to) in corrupt {
        let error = error_of(&with_config(from, to));
        assert_eq!(error.code(), "corrupt_file", "{to}: {error}");
    }
    let option = |text: &str| {
        with_config("\"tie_word_embeddings\": true", &format!("\"tie_word_embeddings\": true, {text}"))
    };
    let unsupported = [
        ("\"attention_bias\": true", "attention_bias"),
        ("\"mlp_bias\": true", "mlp_bias"),
        ("\"hidden_act\": \"gelu\"", "gelu"),
        ("\"partial_rotary_factor\": 0.5", "rotates"),
        ("\"rope_scaling\": {\"rope_type\": \"longrope\", \"factor\": 2.0}", "longrope"),
        ("\"quantization_config\": {\"quant_method\": \"gptq\"}", "gptq"),
        ("\"quantization_config\": {\"quant_method\": \"bitnet\", \"use_rms_norm\": true}", "use_rms_norm"),
        ("\"quantization_config\": {\"quant_method\": \"bitnet\", \"linear_class\": \"other\"}", "other"),
        ("\"quantization\": {\"bits\": 4, \"group_size\": 64}", "MLX"),
    ];
    for (text, words) in unsupported {
        assert_error(&error_of(&option(text)), "unsupported_format", &[words]);
    }
    let error = error_of(&with_config("LlamaForCausalLM", "GemmaForCausalLM"));
    assert_error(&error, "unsupported_format", &["GemmaForCausalLM", "Qwen3ForCausalLM"]);
    let error = error_of(&hugging_face(|_| "{\"error\": \"Entry not found\"}".into(), str::to_owned));
    assert_error(&error, "corrupt_file", &["Entry not found"]);
    // Floats where the config promises packed weights have no scales.
    let packed = option("\"quantization_config\": {\"quant_method\": \"bitnet\"}");
    assert_error(&error_of(&packed), "corrupt_file", &["without its scale"]);
}

#[test]
fn packed_weights_with_bad_scales_are_refused() {
    let mut files = folder("bitnet-c-silu-packed");
    let bytes = &mut files.last_mut().unwrap().1;
    let name = "model.layers.1.mlp.up_proj.weight_scale";
    let file = safetensors_crate::SafeTensors::deserialize(bytes).unwrap();
    let at = file.tensor(name).unwrap().data().as_ptr() as usize - bytes.as_ptr() as usize;
    bytes[at..at + 2].copy_from_slice(&[0xc0, 0x7f]);
    assert_error(&error_of(&files), "corrupt_file", &[name, "NaN"]);

    let mut llama = folder("llama-bitlinear-packed");
    let bytes = &mut llama.last_mut().unwrap().1;
    let file = safetensors_crate::SafeTensors::deserialize(bytes).unwrap();
    let at = file.tensor(name).unwrap().data().as_ptr() as usize - bytes.as_ptr() as usize;
    bytes[at..at + 2].fill(0);
    assert_error(&error_of(&llama), "corrupt_file", &["mlp.up_proj.weight", "divided"]);
}

use ::safetensors as safetensors_crate;

#[test]
fn an_unsupported_model_can_be_inspected() {
    let mut file = GgufFile::tiny_llama();
    file.set("general.architecture", Meta::Text("gemma".into()));
    let mut reader = CheckpointReader::new(ReadOptions::default());
    reader.begin_file("m.gguf", None).unwrap();
    reader.push(&file.write().0).unwrap();
    assert!(reader.header_ready());
    let report = reader.inspect().unwrap();
    assert!(!report.supported && report.config.is_none());
    assert!(report.problem.unwrap().contains("gemma"));
    assert_eq!((report.architecture.as_str(), report.tensors.len()), ("gemma", 11));
    assert_error(&reader.push(b"x").unwrap_err(), "unsupported_format", &["gemma"]);
    assert_error(&reader.end_file().unwrap_err(), "unsupported_format", &["gemma"]);
    assert_error(&reader.finish().err().unwrap(), "unsupported_format", &["gemma"]);
}

#[test]
fn calls_out_of_order_are_refused() {
    let mut reader = CheckpointReader::new(ReadOptions::default());
    assert_error(&reader.push(b"x").unwrap_err(), "invalid_argument", &["begun"]);
    let mut reader = CheckpointReader::new(ReadOptions::default());
    reader.begin_file("a.gguf", None).unwrap();
    assert_error(&reader.begin_file("b.gguf", None).unwrap_err(), "invalid_argument", &["a.gguf", "b.gguf"]);
    let two = [GgufFile::tiny_llama().files(), GgufFile::tiny_llama().files()].concat();
    assert_error(&error_of(&two), "invalid_argument", &["second model"]);
}
