//! Everything that touches JavaScript: the classes `Loader` and `Model` that the npm package drives, the
//! entry of its threads, and the translation of errors. Nothing here computes; it converts and delegates.

mod convert;
mod engine;
mod loader;
mod model;
mod threads;

pub use loader::Loader;
pub use model::Model;
pub use threads::{abandon_thread, serve_thread};

use wasm_bindgen::prelude::*;

/// Makes a Rust panic readable in the console; runs when the module is instantiated.
#[wasm_bindgen(start)]
fn start() {
    console_error_panic_hook::set_once();
}

/// The crate's version.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
