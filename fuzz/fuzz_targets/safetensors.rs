//! Arbitrary bytes as a safetensors checkpoint. The input is `config.json`, a zero byte, and the weights.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna::checkpoint::{CheckpointReader, ReadOptions};

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    let files = [("config.json", &data[..end]), ("model.safetensors", &data[end + 1..])];
    let mut reader = CheckpointReader::new(ReadOptions::default());
    let fed = files.iter().try_for_each(|(name, bytes)| {
        reader.begin_file(name, Some(bytes.len() as u64))?;
        for piece in bytes.chunks(61) {
            reader.push(piece)?;
        }
        reader.end_file()
    });
    let _ = reader.inspect();
    if fed.is_ok() {
        let _ = reader.finish();
    }
});
