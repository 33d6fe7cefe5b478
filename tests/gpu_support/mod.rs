//! What tests of the GPU share: a test that is asynchronous in a browser and plain natively, and a device.

#![allow(dead_code, reason = "each test binary uses its own part")]

use sterna::backend::gpu::{DeviceOptions, Gpu};

/// Defines tests that natively run to the end at once and that a browser awaits.
macro_rules! gpu_test {
    ($(async fn $name:ident() $body:block)*) => {
        $(
            #[cfg(target_arch = "wasm32")]
            #[wasm_bindgen_test::wasm_bindgen_test]
            async fn $name() $body

            #[cfg(not(target_arch = "wasm32"))]
            #[test]
            fn $name() {
                crate::common::now(async $body)
            }
        )*
    };
}
pub(crate) use gpu_test;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

/// A GPU within WebGPU's default limits, or `None`, and a line that says so, where the machine has none at all.
pub async fn open() -> Option<Gpu> {
    open_with(&DeviceOptions { default_limits: true, ..Default::default() }).await
}

pub async fn open_with(options: &DeviceOptions) -> Option<Gpu> {
    match Gpu::open(options, None).await {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            eprintln!("SKIPPED, there is no GPU, not even one in software: {error}");
            None
        }
    }
}
