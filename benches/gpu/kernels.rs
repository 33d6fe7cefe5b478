//! Products with ternary weights: one token against the bytes of the weights, and tiles of many tokens, in every
//! way that a device may choose.

use super::{now, time};
use crate::numbers::Random;
use crate::shape;
use sterna::backend::Backend;
use sterna::backend::gpu::{DeviceOptions, Gpu, GpuMatrix, InputPreparation, Rows, Team, Tiles, Variants};
use sterna::model::LinearInput;

/// `(rows, cols)` of a layer, the larger ones as many together as a token multiplies.
const SHAPES: [(usize, usize); 3] = [(2560, 2560), (6912, 2560), (2560, 6912)];
/// Weights of a measurement: more than caches hold.
const BYTES: usize = 128 << 20;
const TOKENS: usize = 128;

pub fn measure(card: f64) {
    for (rows, tiles) in [
        (Rows::Packed(Team::Subgroup), Tiles::Packed),
        (Rows::Packed(Team::Workgroup(16)), Tiles::Pairs),
        (Rows::Singles, Tiles::SharedPairs),
    ] {
        let variants = Variants { rows, preparation: InputPreparation::Separate, tiles };
        let Ok(gpu) = now(Gpu::open(&DeviceOptions::default(), Some(variants))) else {
            println!("{variants}: this GPU does not run it");
            continue;
        };
        for (rows, cols) in SHAPES {
            measure_shape(&gpu, rows, cols, card);
        }
    }
}

fn measure_shape(gpu: &Gpu, rows: usize, cols: usize, card: f64) {
    let mut random = Random::new(1);
    let bytes = rows * cols / 4;
    let matrices: Vec<GpuMatrix> = (0..BYTES / bytes)
        .map(|_| gpu.upload_matrix(shape::ternary(rows, cols, &mut random)).unwrap())
        .collect();
    let mut seconds = |tokens: usize| {
        let x = gpu.quantize(gpu.tensor(cols, &random.floats(tokens * cols)), LinearInput::Int8);
        time(gpu, |index| drop(gpu.linear(&matrices[index % matrices.len()], &x))).as_secs_f64()
    };
    let (one, many) = (seconds(1), seconds(TOKENS));
    let rate = bytes as f64 / one;
    println!(
        "{:38} {rows:4}×{cols:4}  one token {:8.3} ms {:6.1} GB/s ({:3.0} % of copying)   \
         {TOKENS} tokens {:8.4} ms each, {:6.1} GMAC/s, {:4.1}× faster",
        gpu.kernel_name().replace(" separate", ""),
        1e3 * one,
        rate / 1e9,
        100.0 * rate / card,
        1e3 * many / TOKENS as f64,
        (rows * cols * TOKENS) as f64 / many / 1e9,
        one * TOKENS as f64 / many,
    );
}
