//! The CPU backend: SIMD128 in WebAssembly, portable Rust elsewhere. Each verb lives in a file of its
//! own; `scalar` holds the plain definitions that everything else is tested against.

#[cfg(target_feature = "simd128")]
mod ahead;
mod attention;
mod cache;
mod code_tiles;
mod codes;
mod dense;
#[cfg(target_feature = "simd128")]
mod dense_simd128;
mod dot;
mod gemm;
mod governor;
mod input;
#[cfg(target_feature = "simd128")]
mod lanes;
mod linear;
mod norm;
mod pool;
#[cfg(not(target_feature = "simd128"))]
mod portable;
#[cfg(all(target_feature = "simd128", target_feature = "relaxed-simd"))]
mod relaxed;
#[cfg(all(target_feature = "simd128", target_feature = "relaxed-simd"))]
mod relaxed16;
#[cfg(all(target_feature = "simd128", target_feature = "relaxed-simd"))]
mod relaxed_lowering;
mod rounded;
mod run_product;
mod runs;
pub mod scalar;
mod scaled;
#[cfg(all(target_feature = "simd128", not(target_feature = "relaxed-simd")))]
mod simd128;
#[cfg(target_feature = "simd128")]
mod streams;
mod tensor;
mod ternary;
mod tiles;

pub use cache::CpuCache;
pub use input::CpuInput;
pub use pool::Seat;
pub use tensor::CpuTensor;

use super::{AttentionInput, Backend, CacheShape, KvFormat, Norm, RopeAngles, TokenIds};
use crate::Result;
use crate::error::invalid;
use crate::float::exp;
use crate::generate::sampler::{Sampler, SamplerOptions};
use crate::model::{Activation, LinearInput, ModelConfig, RopeFrequencies};
use crate::quant::Matrix;
use governor::Governor;
use pool::{Pool, lock};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tiles::{TileShape, for_tiles};
use web_time::Instant;

/// The CPU: this thread, and those of a pool.
#[derive(Debug, Clone)]
pub struct Cpu {
    pool: Arc<Pool>,
    governor: Arc<Mutex<Governor>>,
}

impl Default for Cpu {
    /// This thread alone.
    fn default() -> Self {
        Self::with_threads(1)
    }
}

impl Cpu {
    /// Computes in `threads` threads, this one among them. Results do not depend on how many there are.
    /// In WebAssembly the other threads have to be given their [`Seat`]s.
    pub fn with_threads(threads: usize) -> Self {
        let pool = Pool::new(threads);
        let governor = Governor::new(pool.threads());
        Self { pool: Arc::new(pool), governor: Arc::new(Mutex::new(governor)) }
    }

    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// A place for a thread that JavaScript starts.
    pub fn seat(&self) -> Seat {
        self.pool.seat()
    }

    fn begin_step(&self) {
        if self.threads() == 1 {
            return;
        }
        self.pool.take_slept();
        lock(&self.governor).begin(Instant::now());
    }

    fn end_step(&self, tokens: usize) {
        if self.threads() == 1 {
            return;
        }
        let active = lock(&self.governor).end(tokens, Instant::now(), self.pool.take_slept());
        self.pool.set_active(active);
    }

    /// Which kernels run, as `model.info.kernel` shows it.
    pub fn kernel_name(&self) -> &'static str {
        dot::NAME
    }
}

impl Backend for Cpu {
    /// Whole tiles of vectors, few enough that a step ends while a user still waits for its abort.
    const PREFILL_CHUNK: usize = 8 * dot::TILE_VECTORS;
    const IN_FLIGHT: usize = 1;
    const PART_BYTES: Option<usize> = None;

    type Matrix = Matrix;
    type Vector = Arc<[f32]>;
    type Tensor = CpuTensor;
    type Input = CpuInput;
    type Cache = CpuCache;
    type Angles = RopeAngles;
    type Sampler = Sampler;
    type Choice = u32;

    async fn prepare(&self, _: &ModelConfig, _: KvFormat) -> Result<()> {
        Ok(())
    }

    fn upload_matrix(&self, matrix: Matrix) -> Result<Matrix> {
        Ok(matrix)
    }

    fn stack(&self, parts: Vec<Matrix>) -> Result<Matrix> {
        match <[Matrix; 1]>::try_from(parts) {
            Ok([whole]) => Ok(whole),
            Err(parts) => {
                Err(invalid!("{} parts of a matrix were given where one is kept whole", parts.len()))
            }
        }
    }

    fn upload_vector(&self, vector: Vec<f32>) -> Result<Arc<[f32]>> {
        Ok(vector.into())
    }

    fn kv_format(&self, wanted: KvFormat) -> KvFormat {
        wanted
    }

    fn new_cache(&self, shape: CacheShape) -> Result<CpuCache> {
        Ok(CpuCache::new(shape))
    }

    /// Begins a step, which [`Self::commit`] ends.
    fn embed(&self, table: &Matrix, ids: TokenIds<'_, u32>, _: usize) -> CpuTensor {
        self.begin_step();
        let ids = match ids {
            TokenIds::Given(ids) => ids,
            TokenIds::Chosen(id) => std::slice::from_ref(id),
        };
        let mut out = CpuTensor::zeros(ids.len(), table.cols());
        for (token, id) in ids.iter().enumerate() {
            table.decode_row(*id as usize, out.row_mut(token));
        }
        out
    }

    fn norm_quantize(&self, x: &CpuTensor, norm: Norm<'_, Arc<[f32]>>, input: LinearInput) -> CpuInput {
        CpuInput::normalised(x.clone(), &norm, input)
    }

    fn quantize(&self, x: CpuTensor, input: LinearInput) -> CpuInput {
        CpuInput::new(x, input)
    }

    fn linears<const N: usize>(&self, weights: [&Matrix; N], x: &CpuInput) -> [CpuTensor; N] {
        let mut outs = weights.map(|weight| CpuTensor::zeros(x.tokens(), weight.rows()));
        linear::add(&self.pool, weights, x, outs.each_mut());
        outs
    }

    fn linear_add(&self, weight: &Matrix, x: &CpuInput, residual: &mut CpuTensor) {
        linear::add(&self.pool, [weight], x, [residual]);
    }

    fn gate_up(&self, gate: &Matrix, up: &Matrix, x: &CpuInput, act: Activation) -> CpuTensor {
        let [mut inner, up] = self.linears([gate, up], x);
        match act {
            Activation::Relu2 => combine(&self.pool, &mut inner, &up, |g| if g > 0.0 { g * g } else { 0.0 }),
            Activation::Silu => {
                combine(&self.pool, &mut inner, &up, |g| g / (1.0 + exp(if g > -88.0 { -g } else { 88.0 })))
            }
        }
        inner
    }

    fn angles(&self, frequencies: &RopeFrequencies, positions: Range<usize>) -> RopeAngles {
        frequencies.angles(positions.start, positions.len())
    }

    fn attend(
        &self,
        input: AttentionInput<'_, Self>,
        angles: &RopeAngles,
        cache: &mut CpuCache,
    ) -> Result<CpuTensor> {
        attention::attend(&self.pool, input, angles, cache)
    }

    fn commit(&self, cache: &mut CpuCache, tokens: usize) {
        cache.commit(tokens);
        self.end_step(tokens);
    }

    fn last_rows(&self, x: CpuTensor, rows: usize) -> CpuTensor {
        x.into_last_rows(rows)
    }

    async fn read(&self, x: &CpuTensor) -> Result<Vec<f32>> {
        Ok(x.data().to_vec())
    }

    async fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn new_sampler(&self, options: SamplerOptions, said: &[u32], _: usize) -> Result<Sampler> {
        let mut sampler = Sampler::new(options);
        sampler.observe(said);
        Ok(sampler)
    }

    fn choose(&self, mut logits: CpuTensor, _: usize, sampler: &mut Sampler) -> u32 {
        let id = sampler.sample(logits.data_mut());
        sampler.observe(&[id]);
        id
    }

    async fn chosen(&self, choice: u32) -> Result<u32> {
        Ok(choice)
    }
}

fn combine(pool: &Pool, inner: &mut CpuTensor, up: &CpuTensor, act: impl Fn(f32) -> f32 + Sync) {
    // An activation costs about as much as reading this many bytes.
    let shape = TileShape::for_columns(pool, inner.tokens(), inner.width(), 16 * inner.tokens());
    for_tiles(pool, [(inner, shape)], |_, mut tile| {
        for token in tile.tokens.clone() {
            let up = &up.row(token)[tile.columns.clone()];
            for (value, up) in tile.row_mut(token).iter_mut().zip(up) {
                *value = act(*value) * up;
            }
        }
    });
}
