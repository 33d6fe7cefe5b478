//! The model: its configuration, its weights, and the forward pass written once over
//! [`crate::backend::Backend`].

pub mod config;
pub mod weights;

pub use config::{Activation, LinearInput, ModelConfig, Rope, RopeScaling};
pub use weights::{LayerRole, Role, Tensor, Weights, WeightsBuilder};
