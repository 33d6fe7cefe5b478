//! Damaged files: whatever is done to the bytes, the reader ends with a result or a typed error, quickly
//! and in bounded memory. `STERNA_FUZZ_CASES` sets the number of cases of each test.

#![cfg(not(target_arch = "wasm32"))]

mod checkpoint_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use checkpoint_support::*;
use proptest::prelude::*;
use sterna::checkpoint::{CheckpointReader, ReadOptions};

/// Counts what the current thread holds, and the most it held.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    let held = HELD.get() + change;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every method forwards to `System` unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(data, layout) }
    }

    unsafe fn realloc(&self, data: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old block lives until the new one is filled.
        count(size as isize);
        count(-(layout.size() as isize));
        unsafe { System.realloc(data, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that `work` allocated above what was there before.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    work();
    (PEAK.get() - before).max(0) as usize
}

/// A way to damage bytes.
#[derive(Debug, Clone)]
enum Damage {
    Set(u8),
    Flip(u8),
    /// A number where counts, lengths and offsets may be.
    Number(u64),
    Cut,
    Remove(usize),
    Repeat(usize),
    Text(&'static str),
}

const TEXTS: [&str; 9] =
    ["null", "-1", "1e999", "[[[[", "\"\"", "{}", "18446744073709551615", "\\ud800", "true"];
const STARTS: [&[u8]; 3] = [b"GGUF\x03\0\0\0", b"", b"\x20\0\0\0\0\0\0\0{"];

fn damage() -> impl Strategy<Value = Damage> {
    let numbers = prop_oneof![
        any::<u64>(),
        (0u32..64).prop_map(|shift| 1 << shift),
        (0u64..64).prop_map(|small| small),
        (0u64..64).prop_map(|small| small.wrapping_neg()),
    ];
    prop_oneof![
        any::<u8>().prop_map(Damage::Set),
        (0u8..8).prop_map(|bit| Damage::Flip(1 << bit)),
        numbers.prop_map(Damage::Number),
        Just(Damage::Cut),
        (1usize..40).prop_map(Damage::Remove),
        (1usize..40).prop_map(Damage::Repeat),
        prop::sample::select(&TEXTS[..]).prop_map(Damage::Text),
    ]
}

/// Damages `bytes` at a place that is more often in the first `header` bytes than after.
fn apply(bytes: &mut Vec<u8>, header: usize, at: (bool, usize), damage: &Damage) {
    let (in_header, at) = at;
    let range = if in_header { header.min(bytes.len()) } else { bytes.len() };
    let at = at % range.max(1);
    let put = |bytes: &mut Vec<u8>, new: &[u8]| {
        for (byte, new) in bytes[at..].iter_mut().zip(new) {
            *byte = *new;
        }
    };
    match damage {
        _ if bytes.is_empty() => {}
        Damage::Set(value) => bytes[at] = *value,
        Damage::Flip(bits) => bytes[at] ^= bits,
        Damage::Number(number) => put(bytes, &number.to_le_bytes()),
        Damage::Cut => bytes.truncate(at),
        Damage::Remove(count) => drop(bytes.drain(at..(at + count).min(bytes.len()))),
        Damage::Repeat(count) => {
            let copy = bytes[at..(at + count).min(bytes.len())].to_vec();
            bytes.splice(at..at, copy);
        }
        Damage::Text(text) => put(bytes, text.as_bytes()),
    }
}

fn damages() -> impl Strategy<Value = Vec<((bool, usize), Damage)>> {
    prop::collection::vec(((prop::bool::weighted(0.9), any::<usize>()), damage()), 1..5)
}

/// Feeds files as a caller does, stopping at the first error.
fn feed(files: &[File], size_known: bool, piece: usize) {
    let mut reader = CheckpointReader::new(ReadOptions::default());
    for (name, bytes) in files {
        let result = (|| {
            reader.begin_file(name, size_known.then_some(bytes.len() as u64))?;
            for piece in bytes.chunks(piece) {
                reader.push(piece)?;
                drop(reader.take_tensors());
            }
            reader.end_file()
        })();
        let report = reader.inspect();
        assert!(report.is_err() || report.unwrap().tensors.len() < 1 << 18);
        if result.is_err() {
            assert!(reader.push(b"more").is_err(), "an error must stay");
            return;
        }
    }
    drop(reader.finish());
}

fn check(files: &[File], size_known: bool, piece: usize) {
    let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let start = std::time::Instant::now();
    let peak = peak_of(|| feed(files, size_known, piece));
    let limit = 8 * size + (64 << 20);
    assert!(peak <= limit, "{peak} bytes allocated for files of {size}");
    assert!(start.elapsed().as_secs() < 10, "took {:?}", start.elapsed());
}

fn cases(default: u32) -> ProptestConfig {
    let cases =
        std::env::var("STERNA_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 2000, ..Default::default() }
}

/// Where a weights file's header ends.
fn header_of(bytes: &[u8]) -> usize {
    if let Some(length) = bytes.first_chunk::<8>().filter(|_| !bytes.starts_with(b"GGUF")) {
        return 8 + u64::from_le_bytes(*length) as usize;
    }
    let mut reader = CheckpointReader::new(ReadOptions::default());
    reader.begin_file("m.gguf", None).unwrap();
    reader.push(bytes).unwrap();
    reader.inspect().unwrap().tensors.iter().map(|tensor| tensor.offset as usize).min().unwrap()
}

proptest! {
    #![proptest_config(cases(150))]
    #[test]
    fn damaged_gguf_fixtures(
        name in prop::sample::select(GGUFS), damages in damages(), known: bool, piece in 1usize..70_000,
    ) {
        let mut files = gguf(name);
        let header = header_of(&files[0].1);
        for (at, damage) in &damages {
            apply(&mut files[0].1, header, *at, damage);
        }
        check(&files, known, piece);
    }

    #[test]
    fn damaged_safetensors_fixtures(
        name in prop::sample::select(FOLDERS), damages in damages(), known: bool, piece in 1usize..70_000,
        in_config: bool,
    ) {
        let mut files = folder(name);
        let weights = files.len() - 1;
        let header = header_of(&files[weights].1);
        let file = if in_config { 0 } else { weights };
        for (at, damage) in &damages {
            apply(&mut files[file].1, header, *at, damage);
        }
        check(&files, known, piece);
    }
}

proptest! {
    #![proptest_config(cases(1500))]
    #[test]
    fn damaged_small_gguf(damages in damages(), known: bool, piece in 1usize..3000) {
        let (mut bytes, header) = GgufFile::tiny_llama().write();
        for (at, damage) in &damages {
            apply(&mut bytes, header, *at, damage);
        }
        check(&[("m.gguf".into(), bytes)], known, piece);
    }

    #[test]
    fn anything_at_all(start in prop::sample::select(&STARTS[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..400), known: bool,
    ) {
        let bytes = [start, &bytes].concat();
        check(&[("m".into(), bytes)], known, 64);
    }
}

/// A whole load stays near what it keeps: no second copy of the file, however it is pushed.
#[test]
fn a_load_takes_little_more_than_its_tensors() {
    for name in ["bitnet-a-relu2-i2_s", "qwen3-g128-pq2_0"] {
        let files = gguf(name);
        let mut kept = 0;
        let loaded = peak_of(|| {
            let loaded = read(&files).unwrap();
            kept = loaded.tensors.values().map(bytes_of).sum();
        });
        // Beside the tensors: metadata, one row, one vector.
        assert!(loaded < kept + kept / 4 + 400_000, "{name}: {loaded} bytes for {kept}");
    }
}

fn bytes_of(tensor: &sterna::model::Tensor<sterna::quant::Matrix, Vec<f32>>) -> usize {
    match tensor {
        sterna::model::Tensor::Matrix(matrix) => matrix.resident_bytes(),
        sterna::model::Tensor::Vector(values) => 4 * values.len(),
    }
}
