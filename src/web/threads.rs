//! Threads: JavaScript starts workers that share this module's memory, and gives each a seat in a model's
//! pool. In a build without shared memory there are none.

use crate::backend::cpu::Seat;
use wasm_bindgen::prelude::*;

/// Works in the place that `Loader.threadSeat` gave, until the model is freed.
#[wasm_bindgen(js_name = serveThread)]
pub fn serve_thread(seat: usize) {
    // SAFETY: the package passes on each seat to one worker.
    unsafe { Seat::from_raw(seat) }.serve();
}

/// Tells the pool that the worker in this place trapped within `serveThread`.
#[wasm_bindgen(js_name = abandonThread)]
pub fn abandon_thread(seat: usize) {
    // SAFETY: the trapped call holds the seat but will never run again, nor drop it.
    unsafe { Seat::from_raw(seat) }.abandon();
}
