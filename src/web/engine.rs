//! A loader and an engine on whatever device the page asked for, and calls that end when the device does: at
//! once on the CPU, later on a GPU.

use super::convert::JsResult;
use crate::Result;
use crate::backend::KvCache;
use crate::backend::cpu::Cpu;
use crate::backend::gpu::{Counters, Gpu};
use crate::engine::{Engine, Loader};
use crate::generate::evaluation::EvaluationStep;
use crate::generate::{EvaluationKind, GenerationOptions, Step};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use wasm_bindgen::JsValue;

/// A loader on one of the devices.
pub enum AnyLoader {
    Cpu(Box<Loader<Cpu>>),
    Gpu(Box<Loader<Gpu>>),
}

/// An engine on one of the devices.
pub enum AnyEngine {
    Cpu(Box<Engine<Cpu>>),
    Gpu(Box<Engine<Gpu>>),
}

/// The same expression for whichever device it is.
macro_rules! on_device {
    ($enum:ident, $any:expr, $inner:ident => $body:expr) => {
        match $any {
            $enum::Cpu($inner) => $body,
            $enum::Gpu($inner) => $body,
        }
    };
}
pub(super) use on_device;

impl AnyEngine {
    pub fn start_generation(&mut self, prompt: Vec<u32>, options: &GenerationOptions) -> Result<()> {
        on_device!(AnyEngine, self, engine => engine.start_generation(prompt, options))
    }

    pub async fn step(&mut self) -> Result<Step> {
        on_device!(AnyEngine, self, engine => engine.step().await)
    }

    pub fn start_evaluation(&mut self, ids: Vec<u32>, kind: EvaluationKind) -> Result<()> {
        on_device!(AnyEngine, self, engine => engine.start_evaluation(ids, kind))
    }

    pub async fn evaluate_step(&mut self) -> Result<EvaluationStep> {
        on_device!(AnyEngine, self, engine => engine.evaluate_step().await)
    }

    pub fn reset_cache(&mut self) -> Result<()> {
        on_device!(AnyEngine, self, engine => engine.reset_cache())
    }

    /// What a GPU was given to do so far.
    pub fn gpu_work(&self) -> Option<Counters> {
        match self {
            AnyEngine::Cpu(_) => None,
            AnyEngine::Gpu(engine) => Some(engine.transformer().backend().counters()),
        }
    }

    /// Bytes of the KV cache.
    pub fn cache_bytes(&self) -> usize {
        on_device!(AnyEngine, self, engine => engine.session().cache().resident_bytes())
    }
}

/// Where a model's engine is while no step has taken it along.
pub type Slot = Rc<Cell<Option<AnyEngine>>>;

/// What a future gives, where it is ready at once; else a promise of it. The CPU is always ready, so that a trap
/// in it reaches the caller and is not lost in a promise that never settles.
pub fn at_once_or_promise(future: impl Future<Output = JsResult<JsValue>> + 'static) -> JsResult<JsValue> {
    let mut future: Pin<Box<dyn Future<Output = JsResult<JsValue>>>> = Box::pin(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Ok(wasm_bindgen_futures::future_to_promise(future).into()),
    }
}
