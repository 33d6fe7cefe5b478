//! The GPU backend on whatever GPU this machine has, natively: products with ternary weights and the decoding and
//! prefill of a model of the shape of BitNet b1.58 2B-4T, beside what the card's memory gives to a copy.
//!
//!     cargo bench --bench gpu [-- LAYERS]

// A browser is measured by `npm run bench -- --device webgpu`.
#![cfg_attr(target_arch = "wasm32", no_main)]
#![cfg(not(target_arch = "wasm32"))]

#[path = "../../tests/common/mod.rs"]
mod common;
mod copy;
mod end_to_end;
mod kernels;
#[path = "../../tests/numbers/mod.rs"]
mod numbers;
mod shape;

use common::now;
use std::time::Duration;
use sterna::backend::gpu::{DeviceOptions, Gpu};

/// Layers of the model, unless the command line says: enough to be most of a token, few enough for a GPU that is
/// played by a processor.
const LAYERS: usize = 4;

fn main() {
    // Cargo adds an option of its own.
    let layers = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(LAYERS);
    let gpu = match now(Gpu::open(&DeviceOptions::default(), None)) {
        Ok(gpu) => gpu,
        Err(error) => return eprintln!("There is nothing to measure: {error}"),
    };
    println!("{}", gpu.description());
    let card = now(copy::bytes_per_second());
    println!("A copy moves {:.1} GB/s, reading and writing together.", card / 1e9);
    drop(gpu);
    println!("\nProducts with ternary weights");
    kernels::measure(card);
    println!("\nBitNet b1.58 2B-4T, {layers} layers, vocabulary of 128256 in 8 bits");
    end_to_end::measure(layers, card);
}

/// How long `run` takes, which is begun as often as it takes to measure it.
fn time(gpu: &Gpu, mut run: impl FnMut(usize)) -> Duration {
    const LONG_ENOUGH: Duration = Duration::from_millis(300);
    let mut repetitions = 1;
    loop {
        let start = std::time::Instant::now();
        for index in 0..repetitions {
            run(index);
        }
        now(sterna::backend::Backend::settle(gpu)).unwrap();
        let duration = start.elapsed();
        // The first ones also compile.
        if duration >= LONG_ENOUGH && repetitions > 1 {
            return duration / repetitions as u32;
        }
        repetitions *= 2;
    }
}
