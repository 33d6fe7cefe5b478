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
    for variants in selection.candidates(gpu.context.device.has_subgroups).await? {
        match trial.check(variants).await {
            Ok(()) => return Ok(selection.wrong),
            Err(error) => selection.note(variants, error)?,
        }
    }
    Err(unavailable(&format!("no kernels of the GPU can be used ({})", selection.wrong.join("; "))))
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
