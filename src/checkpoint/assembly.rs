//! Joins the parts of a role, which may come in any order and from different files, and keeps count of
//! what has come.

use std::collections::{BTreeMap, BTreeSet};

use super::LoadedTensor;
use super::names::Part;
use super::plan::{Job, Recipe};
use super::sink::Value;
use crate::error::corrupt;
use crate::model::{Role, Tensor};
use crate::quant::{Matrix, mlx2};
use crate::{Error, Result};

/// Tensors on their way from files to a backend.
#[derive(Default)]
pub(super) struct Assembly {
    slots: BTreeMap<Role, Slot>,
    finished: Vec<LoadedTensor>,
    /// Parts that some file's directory lists.
    planned: BTreeSet<(Role, u8)>,
    done: BTreeSet<Role>,
    pub rope_factors: Option<Vec<f32>>,
}

/// What has come of a role.
#[derive(Default)]
struct Slot {
    weight: Option<(Matrix, Job)>,
    scale: Option<f32>,
    group_scales: Option<Vec<f32>>,
    group_biases: Option<Vec<f32>>,
}

impl Assembly {
    /// Notes that a file's directory lists `job`.
    ///
    /// # Errors
    /// `corrupt_file` when another file had it.
    pub fn expect(&mut self, job: &Job) -> Result<()> {
        match self.planned.insert((job.role, job.part as u8)) {
            true => Ok(()),
            false => Err(corrupt!("the checkpoint holds the tensor {:?} twice", job.name)),
        }
    }

    /// The roles that are finished.
    pub fn done(&self) -> &BTreeSet<Role> {
        &self.done
    }

    /// Adds what a job gave.
    pub fn add(&mut self, job: &Job, value: Value) -> Result<()> {
        let slot = match (value, job.part) {
            (Value::Vector(values), Part::Weight) => {
                self.emit_vector(job.role, values);
                return Ok(());
            }
            (Value::Matrix(matrix), _) => {
                let slot = self.slots.entry(job.role).or_default();
                slot.weight = Some((matrix, job.clone()));
                slot
            }
            (Value::Vector(values), part) => {
                let slot = self.slots.entry(job.role).or_default();
                match part {
                    Part::GroupScales => slot.group_scales = Some(values),
                    Part::GroupBiases => slot.group_biases = Some(values),
                    Part::Weight | Part::Scale => slot.scale = values.first().copied(),
                }
                slot
            }
        };
        if !slot.is_complete() {
            return Ok(());
        }
        let slot = self.slots.remove(&job.role).unwrap_or_default();
        self.emit_matrix(job.role, slot)
    }

    /// Tensors finished since the last call.
    pub fn take_finished(&mut self) -> Vec<LoadedTensor> {
        std::mem::take(&mut self.finished)
    }

    /// # Errors
    /// `corrupt_file` for a weight without its scales, or the other way round.
    pub fn check_slots(&self) -> Result<()> {
        let Some((role, slot)) = self.slots.first_key_value() else {
            return Ok(());
        };
        Err(match &slot.weight {
            Some((_, job)) => corrupt!("the checkpoint has the tensor {:?} without its scale", job.name),
            None => corrupt!("the checkpoint has a scale but no weights for {role:?}"),
        })
    }

    fn emit_vector(&mut self, role: Role, values: Vec<f32>) {
        if role == Role::RopeFactors {
            self.rope_factors = Some(values);
        } else {
            self.finished.push(LoadedTensor { role, value: Tensor::Vector(values), more_rows: false });
        }
        self.done.insert(role);
    }

    fn emit_matrix(&mut self, role: Role, slot: Slot) -> Result<()> {
        let Some((matrix, job)) = slot.weight else {
            return Ok(());
        };
        let named = |error: Error| error.in_tensor(&job.name);
        let factor = slot.scale.unwrap_or(1.0);
        let matrix = match (job.recipe, matrix) {
            (Recipe::Plain, matrix) => matrix,
            (Recipe::Multiply, matrix) => matrix.scaled(factor).map_err(named)?,
            (Recipe::Divide, _) if factor == 0.0 => {
                return Err(corrupt!("the scale of {:?} is 0, by which its weights are divided", job.name));
            }
            (Recipe::Divide, matrix) => matrix.scaled(1.0 / factor).map_err(named)?,
            (Recipe::Grouped { group }, Matrix::Ternary(codes)) => {
                let scales = slot.group_scales.unwrap_or_default();
                let biases = slot.group_biases.unwrap_or_default();
                mlx2::join(codes, group, scales, &biases).map_err(named)?
            }
            (Recipe::Grouped { .. }, dense) => dense,
        };
        self.finished.push(LoadedTensor { role, value: Tensor::Matrix(matrix), more_rows: job.more_rows });
        if !job.more_rows {
            self.done.insert(role);
        }
        Ok(())
    }
}

impl Slot {
    fn is_complete(&self) -> bool {
        let Some((_, job)) = &self.weight else {
            return false;
        };
        match job.recipe {
            Recipe::Plain => true,
            Recipe::Multiply | Recipe::Divide => self.scale.is_some(),
            Recipe::Grouped { .. } => self.group_scales.is_some() && self.group_biases.is_some(),
        }
    }
}
