//! From logits to text: sampling, stopping, and the state machine that takes one short step at a time
//! so that a caller can stop, report or yield between steps.

pub mod evaluation;
pub mod generation;
pub mod options;
pub mod sampler;
pub mod session;
pub mod stop;

pub use evaluation::{Evaluation, EvaluationKind};
pub use generation::{FinishReason, Generation, Step, Usage};
pub use options::GenerationOptions;
pub use sampler::Sampler;
pub use session::Session;
