//! The model: its configuration, its weights, and the forward pass written once over
//! [`crate::backend::Backend`].

pub mod config;
pub mod rope;
pub mod transformer;
pub mod weights;

pub use config::{Activation, LinearInput, ModelConfig, Rope, RopeScaling};
pub use rope::RopeFrequencies;
pub use transformer::{LogitRows, Transformer};
pub use weights::{Layer, LayerRole, Role, Tensor, Weights, WeightsBuilder};
