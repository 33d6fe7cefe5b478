//! Arbitrary bytes as a GGUF file. The first byte of the input decides how the rest is cut into pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna::checkpoint::{CheckpointReader, ReadOptions};

fuzz_target!(|data: &[u8]| {
    let Some((control, bytes)) = data.split_first() else { return };
    let size = (control & 1 == 1).then_some(bytes.len() as u64);
    let mut reader = CheckpointReader::new(ReadOptions::default());
    let fed = (|| {
        reader.begin_file("model.gguf", size)?;
        for piece in bytes.chunks(1 + usize::from(control >> 1)) {
            reader.push(piece)?;
        }
        reader.end_file()
    })();
    let _ = reader.inspect();
    if fed.is_ok() {
        let _ = reader.finish();
    }
});
