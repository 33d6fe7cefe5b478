//! GGUF models in several files, headers of several files, and what side files and lone files look like in the
//! wild.

#![cfg(not(target_arch = "wasm32"))]

mod checkpoint_support;

use checkpoint_support::*;
use sterna::checkpoint::{CheckpointReader, InspectReport, ReadOptions};

/// The tiny model in parts that hold `sizes` tensors each.
fn split(sizes: &[usize]) -> Vec<File> {
    let mut tensors = GgufFile::tiny_llama().tensors.into_iter();
    let mut files = Vec::new();
    for (number, size) in sizes.iter().enumerate() {
        let mut part = GgufFile::tiny_llama();
        if number > 0 {
            part.metadata.clear();
        }
        part.set("split.no", Meta::U32(number as u32));
        part.set("split.count", Meta::U32(sizes.len() as u32));
        part.tensors = tensors.by_ref().take(*size).collect();
        files.push((format!("tiny-{:05}-of-{:05}.gguf", number + 1, sizes.len()), part.write().0));
    }
    assert!(tensors.next().is_none());
    files
}

#[test]
fn parts_make_the_same_model_as_one_file() {
    let whole = read(&GgufFile::tiny_llama().files()).unwrap();
    for sizes in [&[11][..], &[4, 7], &[1, 1, 9], &[0, 5, 6], &[5, 0, 6]] {
        let parts = split(sizes);
        let joined = read(&parts).unwrap();
        assert!(joined.contents() == whole.contents(), "{sizes:?}");
        assert_eq!(joined.checkpoint.config, whole.checkpoint.config);
        let pieces = read_with(&parts, ReadOptions::default(), false, |left| left.min(77)).unwrap();
        assert!(pieces.contents() == whole.contents(), "{sizes:?} in pieces");
    }
}

#[test]
fn missing_and_foreign_parts_are_refused() {
    let parts = split(&[4, 4, 3]);
    let refused = |files: Vec<File>, words: &[&str]| {
        assert_error(&error_of(&files), "invalid_argument", words);
    };
    refused(parts[..2].to_vec(), &["3 GGUF files", "2 came"]);
    refused(vec![parts[0].clone(), parts[2].clone()], &["part 3 of 3", "part 2 was expected"]);
    refused(parts[1..].to_vec(), &["part 2 of 3", "part 1 was expected"]);
    refused(vec![parts[0].clone(), parts[0].clone()], &["part 1 of 3", "part 2 was expected"]);
    refused(vec![parts[0].clone(), GgufFile::tiny_llama().files()[0].clone()], &["not parts of one"]);
    refused(vec![split(&[5, 6])[0].clone(), parts[1].clone()], &["not parts of one"]);
    let whole = GgufFile::tiny_llama().files();
    refused(vec![whole[0].clone(), parts[1].clone()], &["second model"]);
    let mut wrong = GgufFile::tiny_llama();
    wrong.set("split.count", Meta::U32(2));
    wrong.set("split.no", Meta::U32(2));
    assert_error(&error_of(&wrong.files()), "corrupt_file", &["part 2 of 2"]);
}

/// The report on the headers of files, as far as `take` bytes of each tell.
fn headers(files: &[File]) -> InspectReport {
    let mut reader = CheckpointReader::new(ReadOptions::default());
    for (name, bytes) in files {
        reader.begin_file(name, Some(bytes.len() as u64)).unwrap();
        for piece in bytes.chunks(100) {
            reader.push(piece).unwrap();
            if reader.header_ready() {
                break;
            }
        }
        reader.skip_rest();
    }
    let report = reader.inspect().unwrap();
    assert!(reader.finish().is_err(), "a model without its data cannot be finished");
    report
}

#[test]
fn the_headers_of_all_parts_make_one_report() {
    let whole = headers(&GgufFile::tiny_llama().files());
    let parts = headers(&split(&[4, 4, 3]));
    assert_eq!(parts.parameters, whole.parameters);
    assert_eq!(parts.tensors.len(), 11);
    assert_eq!(parts.encodings, whole.encodings);
    assert!(parts.supported);
    let part = headers(&split(&[4, 4, 3])[1..2]);
    assert!(!part.supported);
    assert!(part.problem.unwrap().contains("give all parts"));
}

#[test]
fn a_byte_order_mark_in_front_of_json_is_left_out() {
    let mut files = folder("bitnet-c-silu-packed");
    let plain = read(&files).unwrap().contents();
    for (name, bytes) in &mut files {
        if name.ends_with(".json") {
            bytes.splice(..0, *b"\xef\xbb\xbf");
        }
    }
    assert!(read(&files).unwrap().contents() == plain);
}

#[test]
fn weights_are_counted_without_a_config_too() {
    for name in ["bitnet-c-silu-packed", "qwen3-g128-mlx2bit"] {
        let files = folder(name);
        let alone: Vec<File> =
            files.iter().filter(|(name, _)| name.ends_with(".safetensors")).cloned().collect();
        assert_eq!(headers(&alone).parameters, headers_of_weights(&files).parameters, "{name}");
    }
}

/// The report on a folder, whose side files are read whole.
fn headers_of_weights(files: &[File]) -> InspectReport {
    let mut reader = CheckpointReader::new(ReadOptions::default());
    for (name, bytes) in files {
        reader.begin_file(name, Some(bytes.len() as u64)).unwrap();
        reader.push(bytes).unwrap();
        reader.end_file().unwrap();
    }
    reader.inspect().unwrap()
}
