//! The reference checkpoints through the reader: the same weights from every container and encoding, in
//! whatever pieces the bytes come.

#![cfg(not(target_arch = "wasm32"))]

mod checkpoint_support;

use checkpoint_support::*;
use sterna::checkpoint::{
    ActivationChoice, CheckpointReader, EmbeddingFormat, Format, LoadedTensor, ReadOptions,
};
use sterna::model::{Activation, LayerRole, LinearInput, Role, RopeScaling, Tensor};
use sterna::quant::{KernelScales, Matrix};

/// A small generator of piece sizes.
fn pieces(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match seed >> 60 {
            0..4 => 1 + (seed >> 40) as usize % 7,
            4..12 => 1 + (seed >> 40) as usize % 3000,
            _ => 1 + (seed >> 40) as usize % 200_000,
        }
    }
}

#[test]
fn every_gguf_tensor_equals_its_safetensors_source() {
    for name in GGUFS.iter().filter(|name| !name.contains("yarn")) {
        let source = match *name {
            name if name.starts_with("qwen3") => "qwen3-g128-unpacked",
            name if name.starts_with("llama") => "llama-bitlinear-packed",
            name if name.starts_with("bitnet-a") => "bitnet-a-relu2-packed",
            _ => "bitnet-c-silu-packed",
        };
        // The TQ2_0 file of the Llama case keeps its scales as f16.
        let relative = if *name == "llama-bitlinear-tq2_0" { 3.5e-4 } else { 1.2e-7 };
        let (ours, wanted) = (read(&gguf(name)).unwrap(), read(&folder(source)).unwrap());
        assert!(ours.tensors.keys().eq(wanted.tensors.keys()), "{name}");
        for role in ours.tensors.keys() {
            for (ours, wanted) in ours.values(*role).iter().zip(wanted.values(*role)) {
                // Embeddings went from bf16 to f16, which loses bits of the smallest values.
                let difference = (ours - wanted).abs();
                assert!(
                    difference <= relative * wanted.abs() + 6e-8,
                    "{name} {role:?}: {ours} is not {wanted}"
                );
            }
        }
    }
}

#[test]
fn mlx_groups_equal_the_unpacked_weights() {
    let (mlx, unpacked) = (folder("qwen3-g128-mlx2bit"), folder("qwen3-g128-unpacked"));
    let (mlx, unpacked) = (read(&mlx).unwrap(), read(&unpacked).unwrap());
    for role in unpacked.tensors.keys() {
        assert_eq!(mlx.values(*role), unpacked.values(*role), "{role:?}");
    }
    for loaded in [&mlx, &unpacked] {
        let matrices = [Role::Embedding, Role::Layer(1, LayerRole::Down), Role::Layer(0, LayerRole::Query)];
        for role in matrices {
            assert!(matches!(loaded.scales(role), KernelScales::Group { size: 128, .. }), "{role:?}");
        }
    }
}

#[test]
fn pieces_do_not_matter() {
    let ggufs = GGUFS.iter().map(|name| (*name, gguf(name)));
    let folders = FOLDERS.iter().map(|name| (*name, folder(name)));
    for (index, (name, files)) in ggufs.chain(folders).enumerate() {
        let whole = read(&files).unwrap().contents();
        for size_known in [true, false] {
            let seed = 2 * index as u64 + u64::from(size_known);
            let random = read_with(&files, ReadOptions::default(), size_known, pieces(seed)).unwrap();
            assert!(random.contents() == whole, "{name} in random pieces");
        }
        let small = files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < 400_000;
        if small {
            let bytes = read_with(&files, ReadOptions::default(), true, |_| 1).unwrap();
            assert!(bytes.contents() == whole, "{name} byte by byte");
        }
    }
}

#[test]
fn families_are_recognised() {
    let config = |files: &[File]| read(files).unwrap().checkpoint.config;
    let a = config(&gguf("bitnet-a-relu2-i2_s"));
    assert_eq!(
        (a.architecture.as_str(), a.activation, a.sub_norms),
        ("bitnet-b1.58", Activation::Relu2, true)
    );
    assert_eq!((a.hidden_size, a.intermediate_size, a.num_layers), (256, 512, 4));
    assert_eq!((a.num_heads, a.num_kv_heads, a.head_dim, a.vocab_size), (8, 2, 32, 512));
    assert_eq!((a.norm_eps, a.rope.theta, a.max_context), (1e-5, 500_000.0, 512));
    let c = config(&gguf("bitnet-c-silu-tq1_0"));
    assert_eq!((c.activation, c.sub_norms, c.linear_input), (Activation::Silu, true, LinearInput::Int8));
    let q = config(&folder("qwen3-g128-mlx2bit"));
    assert_eq!((q.qk_norm, q.sub_norms, q.head_dim, q.query_width()), (true, false, 64, 384));
    assert_eq!(q.linear_input, LinearInput::Float);
    let yarn = RopeScaling::Yarn {
        factor: 4.0,
        original_context: 32,
        beta_fast: 32.0,
        beta_slow: 1.0,
        attention_factor: None,
    };
    assert_eq!(config(&gguf("qwen3-g128-yarn-q2_0_g64")).rope.scaling, yarn);
    assert_eq!(config(&gguf("llama-bitlinear-i2_s")).linear_input, LinearInput::Int8);
    assert_eq!(config(&gguf("llama-bitlinear-tq2_0")).linear_input, LinearInput::Float);
    assert_eq!(config(&folder("llama-bitlinear-packed")).linear_input, LinearInput::Int8);
}

#[test]
fn one_scale_in_every_block_becomes_one_scale() {
    for name in ["bitnet-a-relu2-tq2_0", "bitnet-c-silu-tq1_0", "llama-bitlinear-tq2_0"] {
        let loaded = read(&gguf(name)).unwrap();
        for role in [LayerRole::Query, LayerRole::Key, LayerRole::Up, LayerRole::Down] {
            let scales = loaded.scales(Role::Layer(1, role));
            assert!(matches!(scales, KernelScales::Tensor(_)), "{name} {role:?} {scales:?}");
        }
    }
}

#[test]
fn activations_can_be_chosen() {
    for (choice, input) in
        [(ActivationChoice::Int8, LinearInput::Int8), (ActivationChoice::Float, LinearInput::Float)]
    {
        let options = ReadOptions { activations: choice, ..Default::default() };
        for files in [gguf("bitnet-c-silu-i2_s"), folder("qwen3-g128-unpacked")] {
            let loaded = read_with(&files, options.clone(), true, |left| left).unwrap();
            assert_eq!(loaded.checkpoint.config.linear_input, input);
        }
    }
}

#[test]
fn large_dense_matrices_come_in_parts_when_asked_for() {
    let formats = [EmbeddingFormat::File, EmbeddingFormat::F16, EmbeddingFormat::Q8, EmbeddingFormat::Q4];
    for (embedding, files) in formats
        .into_iter()
        .flat_map(|format| [(format, folder("bitnet-b-odd-packed")), (format, gguf("llama-bitlinear-i2_s"))])
    {
        let options = ReadOptions { embedding, ..Default::default() };
        let whole = read_with(&files, options.clone(), true, |left| left).unwrap();
        let mut reader = CheckpointReader::new(ReadOptions { part_bytes: Some(6000), ..options });
        let mut parts = Vec::new();
        for (name, bytes) in &files {
            reader.begin_file(name, Some(bytes.len() as u64)).unwrap();
            for piece in bytes.chunks(7001) {
                reader.push(piece).unwrap();
                parts.extend(reader.take_tensors());
            }
            reader.end_file().unwrap();
        }
        let (done, total) = reader.progress();
        assert_eq!(done, total);
        let embedding: Vec<LoadedTensor> =
            parts.into_iter().filter(|part| part.role == Role::Embedding).collect();
        assert!(embedding.len() > 2 && !embedding.last().unwrap().more_rows);
        let wanted = whole.matrix(Role::Embedding);
        let (mut row, mut ours, mut theirs) = (0, vec![0.0; wanted.cols()], vec![0.0; wanted.cols()]);
        for part in embedding {
            let Tensor::Matrix(part) = part.value else { panic!("an embedding is a matrix") };
            for place in 0..part.rows() {
                part.decode_row(place, &mut ours);
                wanted.decode_row(row, &mut theirs);
                assert_eq!(ours, theirs, "row {row}");
                row += 1;
            }
        }
        assert_eq!(row, wanted.rows());
    }
}

#[test]
fn a_master_checkpoint_has_the_codes_of_its_packed_copy() {
    let master = read(&folder("bitnet-a-relu2-bf16")).unwrap();
    let packed = read(&folder("bitnet-a-relu2-packed")).unwrap();
    for (role, tensor) in &packed.tensors {
        let sterna::model::Tensor::Matrix(Matrix::Ternary(wanted)) = tensor else { continue };
        let Matrix::Ternary(ours) = master.matrix(*role) else { panic!("{role:?} is dense") };
        assert_eq!(ours.bytes(), wanted.bytes(), "{role:?}");
        let (KernelScales::Tensor(ours), KernelScales::Tensor(wanted)) = (ours.scales(), wanted.scales())
        else {
            panic!("{role:?} has several scales")
        };
        // The packed copy rounds its scale to bf16.
        assert!((ours - wanted).abs() <= 0.004 * wanted);
    }
}

#[test]
fn a_tied_head_is_the_embedding_and_an_untied_one_is_not() {
    assert!(!read(&folder("bitnet-a-relu2-packed")).unwrap().tensors.contains_key(&Role::Head));
    let llama = read(&folder("llama-bitlinear-packed")).unwrap();
    assert!(matches!(llama.matrix(Role::Head), Matrix::Dense(_)));
}

#[test]
fn tokens_template_and_defaults_come_along() {
    let folder = read(&folder("bitnet-a-relu2-packed")).unwrap().checkpoint;
    assert_eq!((folder.special.bos, folder.special.eos), (Some(509), vec![510, 511]));
    assert_eq!((folder.defaults.temperature, folder.defaults.top_p), (Some(0.6), Some(0.9)));
    assert!(folder.tokenizer.is_none());

    let gguf = read(&gguf("bitnet-a-relu2-i2_s")).unwrap().checkpoint;
    assert_eq!(gguf.special.eos, [510, 511], "<|end_of_text|> by id, <|eot_id|> by name");
    assert_eq!((gguf.special.bos, gguf.special.add_bos), (Some(509), Some(true)));
    assert_eq!(gguf.template.bos_token.as_deref(), Some("<|begin_of_text|>"));
    let Some(sterna::text::TokenizerSource::Gguf(vocab)) = gguf.tokenizer else { panic!("no vocabulary") };
    assert_eq!((vocab.tokens.len(), vocab.token_types.len(), vocab.model.as_str()), (512, 512, "gpt2"));
    assert_eq!(vocab.pre.as_deref(), Some("llama-bpe"));
    assert!(!vocab.merges.is_empty());
}

#[test]
fn a_report_needs_the_header_only() {
    let mut reader = CheckpointReader::new(ReadOptions::default());
    let bytes = fixture("gguf/qwen3-g128-q2_0_g128_prism.gguf");
    reader.begin_file("model.gguf", Some(bytes.len() as u64)).unwrap();
    assert!(reader.inspect().is_err());
    for piece in bytes.chunks(500) {
        reader.push(piece).unwrap();
        if reader.header_ready() {
            break;
        }
    }
    let report = reader.inspect().unwrap();
    assert!(report.supported && report.problem.is_none());
    assert_eq!((report.format, report.architecture.as_str()), (Format::Gguf, "qwen3"));
    assert_eq!(report.file_bytes, bytes.len() as u64);
    assert_eq!(report.encodings.iter().map(|e| e.tensors).sum::<u64>(), report.tensors.len() as u64);
    assert_eq!(report.encodings[0].encoding, "Q2_0 (blocks of 128)");
    assert!(report.parameters > 0 && reader.resident_bytes() > 0);
    let json = serde_json::to_value(&report).unwrap();
    assert!(json["fileBytes"].is_u64() && json["config"]["headDim"] == 64);
    let (done, total) = reader.progress();
    assert!(done < total && total == report.tensors.len());
}

#[test]
fn shards_load_like_one_file() {
    let mut files = folder("bitnet-c-silu-packed");
    let (_, whole) = files.pop().unwrap();
    let parsed = safetensors_crate::SafeTensors::deserialize(&whole).unwrap();
    // Scales and weights of the same linear land in different shards.
    let mut shards = [Vec::new(), Vec::new()];
    let mut map = serde_json::Map::new();
    for (name, tensor) in parsed.iter() {
        let at = usize::from(name.ends_with("weight_scale"));
        map.insert(name.into(), format!("model-0000{}-of-00002.safetensors", at + 1).into());
        shards[at].push((name.to_owned(), tensor));
    }
    let index = serde_json::json!({ "metadata": {}, "weight_map": map });
    files.push(("model.safetensors.index.json".into(), index.to_string().into_bytes()));

    let mut reader = CheckpointReader::new(ReadOptions::default());
    for (name, bytes) in &files {
        reader.begin_file(name, None).unwrap();
        reader.push(bytes).unwrap();
        reader.end_file().unwrap();
    }
    let names = reader.shards();
    assert_eq!(names, ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]);
    for (name, tensors) in names.iter().zip(shards) {
        files.push((name.clone(), safetensors_crate::serialize(tensors, None).unwrap()));
    }
    let wanted = read(&folder("bitnet-c-silu-packed")).unwrap();
    assert!(read(&files).unwrap().contents() == wanted.contents());

    files.pop();
    assert_error(&read(&files).err().unwrap(), "corrupt_file", &["without its scale"]);
}

use ::safetensors as safetensors_crate;

#[test]
fn the_embedded_model_loads() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/bit-7m");
    let names = [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "model.safetensors",
    ];
    let files: Vec<File> =
        names.iter().map(|name| ((*name).into(), std::fs::read(root.join(name)).unwrap())).collect();
    let checkpoint = read(&files).unwrap().checkpoint;
    assert_eq!(checkpoint.special.eos, [1, 4]);
    assert_eq!(checkpoint.template.bos_token.as_deref(), Some("<|begin_of_text|>"));
    assert!(checkpoint.template.jinja.is_some() && checkpoint.tokenizer.is_some());
    assert_eq!(checkpoint.defaults.max_new_tokens, Some(300));
}
