//! Chooses the kernels that a device runs, by what they give and how long they take and not by the device's name.
//!
//! Compiling takes longer than anything else here, and nothing is compiled for it alone but what loses: candidates are
//! timed on products of a layer in the shape of the model that is loaded. The fastest combination then runs that layer
//! as a model, which the CPU runs too, since a kernel that does not compile would otherwise be silent and give zeros.

use super::Gpu;
use super::device::unavailable;
use super::trial::Trial;
use super::variants::{InputPreparation, Rows, Team, Tiles, Variants};
use crate::backend::KvFormat;
use crate::model::ModelConfig;
use crate::{Error, Result};
use web_time::Duration;

/// Invocations that share a row where subgroups are not to be had.
const WORKGROUP_LANES: u32 = 16;
/// A product that takes so long gains nothing by a dispatch less.
const LONG_FOR_A_DISPATCH: Duration = Duration::from_millis(2);
/// The place of what is taken only where all else is wrong.
const LAST: Duration = Duration::from_secs(3600);
/// So many times slower with one token, packed products (or singles) are not faster with several.
const CLEARLY_SLOWER: u32 = 2;

/// Sets the device's variants to the fastest that give right results. Returns what was wrong with others.
///
/// # Errors
/// `unsupported_browser` when none does, `device_lost`, `out_of_memory`.
pub async fn select(gpu: &Gpu, config: &ModelConfig, kv_format: KvFormat) -> Result<Vec<String>> {
    let trial = Trial::new(gpu, config, kv_format).await?;
    if let Some(forced) = gpu.forced {
        trial.check(forced).await?;
        return Ok(Vec::new());
    }
    let mut selection = Selection { trial: &trial, wrong: Vec::new() };
    let candidates = selection.candidates(gpu.context.device.has_subgroups).await?;
    selection.take_first_right(&candidates).await?;
    Ok(selection.wrong)
}

struct Selection<'a> {
    trial: &'a Trial<'a>,
    wrong: Vec<String>,
}

impl Selection<'_> {
    /// All that may win on some device, the fastest first.
    async fn candidates(&mut self, has_subgroups: bool) -> Result<Vec<Variants>> {
        let (team, pairs) = match has_subgroups {
            true => (Team::Subgroup, Tiles::SharedPairs),
            false => (Team::Workgroup(WORKGROUP_LANES), Tiles::Pairs),
        };
        let plain =
            Variants { rows: Rows::Singles, preparation: InputPreparation::Separate, tiles: Tiles::Packed };
        let mut rows: Vec<(Duration, Variants)> = Vec::new();
        for rows_kernel in [Rows::Packed(team), Rows::Singles] {
            let variants = Variants { rows: rows_kernel, ..plain };
            rows.extend(self.timed(variants, self.trial.time_row(variants).await)?);
        }
        rows.sort_by_key(|(time, _)| *time);
        let (mut kinds, mut hopeless) = (vec![Tiles::Packed, pairs], Vec::new());
        if let [(fast, faster), (slow, _)] = rows[..]
            && slow > CLEARLY_SLOWER * fast
        {
            let is_packed = faster.rows == Rows::Packed(team);
            (kinds, hopeless) = kinds.into_iter().partition(|kind| (*kind == Tiles::Packed) == is_packed);
        }
        if let Some((time, fastest)) = rows.first().copied()
            && time < LONG_FOR_A_DISPATCH
        {
            let inline = Variants { preparation: InputPreparation::Inline, ..fastest };
            rows.extend(self.timed(inline, self.trial.time_row(inline).await)?);
        }
        let mut tiles: Vec<(Duration, Variants)> = Vec::new();
        for kind in kinds {
            let variants = Variants { tiles: kind, ..plain };
            tiles.extend(self.timed(variants, self.trial.time_tile(variants).await)?);
        }
        tiles.extend(hopeless.into_iter().map(|kind| (LAST, Variants { tiles: kind, ..plain })));
        let mut all: Vec<(Duration, Variants)> = rows
            .iter()
            .flat_map(|(row_time, row)| {
                let with = |(tile_time, tile): &(Duration, Variants)| {
                    (*row_time + *tile_time, Variants { tiles: tile.tiles, ..*row })
                };
                tiles.iter().map(with)
            })
            .collect();
        all.sort_by_key(|(time, _)| *time);
        Ok(all.into_iter().map(|(_, variants)| variants).collect())
    }

    /// Sets the device's variants to the first of these that give right results.
    async fn take_first_right(&mut self, candidates: &[Variants]) -> Result<()> {
        for variants in candidates.iter().copied() {
            match self.trial.check(variants).await {
                Ok(()) => return Ok(()),
                Err(error) => self.note(variants, error)?,
            }
        }
        Err(unavailable(&format!("no kernels of the GPU can be used ({})", self.wrong.join("; "))))
    }

    /// What a candidate took, unless something is wrong with it.
    fn timed(&mut self, variants: Variants, time: Result<Duration>) -> Result<Option<(Duration, Variants)>> {
        match time {
            Ok(time) => Ok(Some((time, variants))),
            Err(error) => self.note(variants, error).map(|()| None),
        }
    }

    /// Notes what is wrong with a candidate; what is wrong with the device ends the selection.
    fn note(&mut self, variants: Variants, error: Error) -> Result<()> {
        match error {
            Error::DeviceLost(_) | Error::OutOfMemory(_) => Err(error),
            error => {
                self.wrong.push(format!("{variants}: {error}"));
                Ok(())
            }
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::backend::gpu::DeviceOptions;
    use crate::backend::gpu::kernels::{Texts, text};
    use crate::model::{Activation, LinearInput, Rope, RopeScaling};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const SINGLES: Variants =
        Variants { rows: Rows::Singles, preparation: InputPreparation::Separate, tiles: Tiles::Packed };
    const PACKED: Variants = Variants { rows: Rows::Packed(Team::Workgroup(WORKGROUP_LANES)), ..SINGLES };

    fn config() -> ModelConfig {
        ModelConfig {
            architecture: "test".into(),
            vocab_size: 300,
            hidden_size: 128,
            intermediate_size: 200,
            num_layers: 2,
            num_heads: 2,
            num_kv_heads: 1,
            head_dim: 64,
            max_context: 128,
            norm_eps: 1e-5,
            activation: Activation::Relu2,
            rope: Rope { theta: 10_000.0, scaling: RopeScaling::None },
            sub_norms: true,
            qk_norm: false,
            linear_input: LinearInput::Int8,
        }
    }

    /// Natively whoever asks a GPU waits for it, so that every future is ready.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("the future has to wait for something"),
        }
    }

    /// A GPU whose shaders are others, or `None`, and a line that says so, where the machine has none.
    fn gpu_with(shaders: Texts) -> Option<Gpu> {
        let options = DeviceOptions { default_limits: true, ..Default::default() };
        match now(Gpu::open_with_shaders(&options, None, shaders)) {
            Ok(gpu) => Some(gpu),
            Err(error) => {
                eprintln!("SKIPPED, there is no GPU, not even one in software: {error}");
                None
            }
        }
    }

    /// The file with something else in the place of a part of it.
    fn changed(part: &'static str, from: &str, to: &str) -> &'static str {
        assert!(text(part).contains(from), "{part} has no {from:?} any more");
        text(part).replace(from, to).leak()
    }

    fn singles_that_do_not_compile(part: &'static str) -> &'static str {
        match part {
            "ternary_row.singles" => changed(part, "fn main(", "fn main(("),
            part => text(part),
        }
    }

    fn wrong_singles(part: &'static str) -> &'static str {
        match part {
            "ternary_row.singles" => changed(part, "* ROW_UNITS", "* (1.5 * ROW_UNITS)"),
            part => text(part),
        }
    }

    fn wrong_pairs(part: &'static str) -> &'static str {
        match part {
            "ternary_tile.pairs" => changed(part, "floor(", "ceil("),
            part => text(part),
        }
    }

    /// What all ternary products end with.
    fn nothing_stored(part: &'static str) -> &'static str {
        match part {
            "ternary_linear" => changed(part, "out[at + row] = value[row]", "out[at + row] = 0.0"),
            part => text(part),
        }
    }

    fn first_right(gpu: &Gpu, candidates: &[Variants]) -> Result<Vec<String>> {
        let trial = now(Trial::new(gpu, &config(), KvFormat::F32))?;
        let mut selection = Selection { trial: &trial, wrong: Vec::new() };
        now(selection.take_first_right(candidates)).map(|()| selection.wrong)
    }

    #[test]
    fn kernels_that_do_not_compile_are_left_out() {
        let Some(gpu) = gpu_with(singles_that_do_not_compile) else { return };
        now(gpu.prepare(&config(), KvFormat::F32)).unwrap();
        assert!(gpu.kernel_name().starts_with("workgroup/16 packed"), "{}", gpu.kernel_name());
        let rejected = gpu.rejected();
        assert_eq!(rejected.len(), 1, "{rejected:?}");
        assert!(rejected[0].starts_with("singles"), "{rejected:?}");
        assert!(rejected[0].contains("does not compile"), "{rejected:?}");
        now(gpu.settle()).unwrap();
    }

    #[test]
    fn kernels_that_give_wrong_results_make_way_for_the_next() {
        let other_tiles = Variants { tiles: Tiles::Pairs, ..PACKED };
        for (shaders, candidates) in
            [(wrong_singles as Texts, [SINGLES, PACKED]), (wrong_pairs as Texts, [other_tiles, PACKED])]
        {
            let Some(gpu) = gpu_with(shaders) else { return };
            let wrong = first_right(&gpu, &candidates).unwrap();
            assert_eq!(gpu.kernel_name(), PACKED.to_string());
            assert_eq!(wrong.len(), 1, "{wrong:?}");
            assert!(wrong[0].starts_with(&candidates[0].to_string()), "{wrong:?}");
            assert!(wrong[0].contains("results are wrong"), "{wrong:?}");
        }
    }

    #[test]
    fn a_gpu_that_computes_nothing_right_is_refused() {
        let Some(gpu) = gpu_with(nothing_stored) else { return };
        let error = now(gpu.prepare(&config(), KvFormat::F32)).unwrap_err();
        assert_eq!(error.code(), "unsupported_browser");
        assert!(error.to_string().contains("results are wrong"), "{error}");
    }
}
