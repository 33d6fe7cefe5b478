//! The CPU kernels as a WebAssembly module that a benchmark can drive: it makes matrices, runs one verb
//! of the backend on them, or only reads their bytes. Times are taken by `measure.mjs`, outside.

#![cfg(target_arch = "wasm32")]

mod layer;

#[cfg(target_feature = "relaxed-simd")]
use std::arch::wasm32::{i8x16_splat, i32x4_extract_lane, i32x4_relaxed_dot_i8x16_i7x16_add, i32x4_splat};
use std::arch::wasm32::{u64x2_extract_lane, u64x2_splat, v128, v128_load, v128_or};
use std::cell::RefCell;
use sterna::backend::cpu::{Cpu, CpuInput, CpuTensor};
use sterna::backend::{Backend, KvFormat};
use sterna::model::LinearInput;
use sterna::quant::{Int4Matrix, Int8Matrix, Matrix, Scales, TernaryMatrix};

/// Columns that share a scale where the benchmark asks for group scales.
const GROUP: usize = 128;

#[derive(Default)]
struct Bench {
    matrices: Vec<Matrix>,
    input: Option<CpuInput>,
    random: u32,
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::default();
}

impl Bench {
    /// xorshift32: only timing depends on these numbers.
    fn next(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    /// Uniform in −½…½.
    fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.next() as f32 / u32::MAX as f32 - 0.5).collect()
    }

    fn ternary(&mut self, rows: usize, cols: usize, grouped: bool) -> TernaryMatrix {
        let scales = if grouped {
            Scales::Group { size: GROUP, values: vec![0.5; rows * cols.div_ceil(GROUP)] }
        } else {
            Scales::Tensor(0.5)
        };
        let mut matrix = TernaryMatrix::unfilled(rows, cols, scales).expect("memory for the matrices");
        let codes: Vec<u8> = (0..cols + 64).map(|_| (self.next() >> 8) as u8 % 3).collect();
        for row in 0..rows {
            let shift = self.next() as usize % 64;
            matrix.put_row(row, &codes[shift..shift + cols]);
        }
        matrix
    }
}

/// Replaces the matrices by `count` ternary ones of this shape. Returns the bytes of one's codes.
#[unsafe(no_mangle)]
pub extern "C" fn make_ternary(rows: usize, cols: usize, count: usize, grouped: bool) -> usize {
    BENCH.with_borrow_mut(|bench| {
        bench.random = 12345;
        bench.matrices.clear();
        let mut bytes = 0;
        for _ in 0..count {
            let matrix = bench.ternary(rows, cols, grouped);
            bytes = matrix.bytes().len();
            bench.matrices.push(Matrix::Ternary(matrix));
        }
        bytes
    })
}

/// Replaces the matrices by `count` ones of 8-bit rows. Returns the bytes of one's weights.
#[unsafe(no_mangle)]
pub extern "C" fn make_int8(rows: usize, cols: usize, count: usize) -> usize {
    BENCH.with_borrow_mut(|bench| {
        bench.random = 12345;
        bench.matrices.clear();
        let weights = bench.floats(cols);
        for _ in 0..count {
            let mut matrix = Int8Matrix::unfilled(rows, cols).expect("memory for the matrices");
            for row in 0..rows {
                matrix.put_row(row, &weights).expect("finite weights");
            }
            bench.matrices.push(Matrix::Int8(matrix));
        }
        rows * cols
    })
}

/// Replaces the matrices by `count` ones of 4-bit rows. Returns the bytes of one's weights.
#[unsafe(no_mangle)]
pub extern "C" fn make_int4(rows: usize, cols: usize, count: usize) -> usize {
    BENCH.with_borrow_mut(|bench| {
        bench.random = 12345;
        bench.matrices.clear();
        let weights = bench.floats(cols);
        let mut bytes = 0;
        for _ in 0..count {
            let mut matrix = Int4Matrix::unfilled(rows, cols).expect("memory for the matrices");
            for row in 0..rows {
                matrix.put_row(row, &weights).expect("finite weights");
            }
            bytes = matrix.resident_bytes();
            bench.matrices.push(Matrix::Int4(matrix));
        }
        bytes
    })
}

/// How keys and values are kept, by the number that [`make_layers`] takes.
const KV_FORMATS: [KvFormat; 4] = [KvFormat::F32, KvFormat::F16, KvFormat::Q16, KvFormat::Q8];

/// Replaces the layers by `count` ones of BitNet b1.58 2B-4T after `context` tokens, for `tokens` more.
#[unsafe(no_mangle)]
pub extern "C" fn make_layers(count: usize, context: usize, tokens: usize, kv_format: usize) {
    BENCH.with_borrow_mut(|bench| {
        *bench = Bench { random: 12345, ..Default::default() };
        let shared = RefCell::new(bench);
        layer::make(
            count,
            context,
            tokens,
            KV_FORMATS[kv_format],
            |rows, cols| Matrix::Ternary(shared.borrow_mut().ternary(rows, cols, false)),
            |len| shared.borrow_mut().floats(len),
        );
    });
}

/// The tokens through layer `index`. Returns one value of the result, as a use of it.
#[unsafe(no_mangle)]
pub extern "C" fn run_layer(index: usize) -> f32 {
    layer::run(index)
}

/// The matrix products of [`run_layer`].
#[unsafe(no_mangle)]
pub extern "C" fn run_products(index: usize) -> f32 {
    layer::products(index)
}

/// The attention of [`run_layer`].
#[unsafe(no_mangle)]
pub extern "C" fn run_attention(index: usize) -> f32 {
    layer::attend(index)
}

/// Replaces the activations by `tokens` random vectors, quantised to int8 or kept as floats.
#[unsafe(no_mangle)]
pub extern "C" fn make_input(tokens: usize, cols: usize, float: bool) {
    BENCH.with_borrow_mut(|bench| {
        let values = bench.floats(tokens * cols);
        let kind = if float { LinearInput::Float } else { LinearInput::Int8 };
        bench.input = Some(CpuInput::new(CpuTensor::from_data(cols, values), kind));
    });
    // The input is prepared on first use; that is not what is measured.
    linear(0);
}

/// Matrix `index` times the activations. Returns one value of the result, as a use of it.
#[unsafe(no_mangle)]
pub extern "C" fn linear(index: usize) -> f32 {
    BENCH.with_borrow(|bench| {
        let input = bench.input.as_ref().expect("make_input comes first");
        Cpu::default().linear(&bench.matrices[index], input).data()[0]
    })
}

/// Reads the weights of matrix `index`, four streams in lock step, 64 bytes of each at a time: what the
/// memory gives to one thread of this engine.
#[unsafe(no_mangle)]
pub extern "C" fn read(index: usize) -> u64 {
    BENCH.with_borrow(|bench| match &bench.matrices[index] {
        Matrix::Ternary(matrix) => read_streams(matrix.bytes()),
        Matrix::Int8(matrix) => read_streams(matrix.bytes()),
        Matrix::Int4(matrix) => read_streams(matrix.bytes()),
        Matrix::Dense(_) => unreachable!("no such matrices are made"),
    })
}

fn read_streams(bytes: &[u8]) -> u64 {
    let (lines, _) = bytes.as_chunks::<64>();
    let quarter = lines.len() / 4;
    let mut seen = [u64x2_splat(0); 4];
    for line in 0..quarter {
        for stream in 0..4 {
            let at = lines[stream * quarter + line].as_ptr().cast::<v128>();
            for (part, seen) in seen.iter_mut().enumerate() {
                // SAFETY: a line is 64 bytes, four vectors.
                *seen = v128_or(*seen, unsafe { v128_load(at.add(part)) });
            }
        }
    }
    let [a, b, c, d] = seen;
    let all = v128_or(v128_or(a, b), v128_or(c, d));
    u64x2_extract_lane::<0>(all) | u64x2_extract_lane::<1>(all)
}

/// Independent sums of [`peak`]: enough to hide an instruction's latency, as many as a tile has.
#[cfg(target_feature = "relaxed-simd")]
const PEAK_SUMS: usize = 12;

/// Nothing but the relaxed kernel's multiply-and-add instruction, `steps` times on each of twelve sums:
/// `192 · steps` products, what the processor's arithmetic gives to 128-bit vectors.
#[cfg(target_feature = "relaxed-simd")]
#[unsafe(no_mangle)]
pub extern "C" fn peak(steps: usize) -> i32 {
    let (x, codes) = (i8x16_splat(3), i8x16_splat(1));
    let mut sums = [i32x4_splat(0); PEAK_SUMS];
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, *sum);
        }
    }
    sums.into_iter().fold(0, |total, sum| total ^ i32x4_extract_lane::<0>(sum))
}

/// Which kernels the module has: 0 portable, 1 SIMD128, 2 relaxed SIMD.
#[unsafe(no_mangle)]
pub extern "C" fn kernel() -> u32 {
    match Cpu::default().kernel_name() {
        "relaxed-simd" => 2,
        "simd128" => 1,
        _ => 0,
    }
}
