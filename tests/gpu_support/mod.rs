//! What tests of the GPU share: a test that is asynchronous in a browser and plain natively, and a device.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test binary uses its own part")]

use std::cell::RefCell;
use sterna::Result;
use sterna::backend::gpu::{DeviceOptions, Gpu, InputPreparation, Rows, Team, Tiles, Variants};

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

/// What the package's worker does too: wgpu does not know the feature `subgroups` of browsers, so it is put
/// into the request on its way.
#[cfg(target_arch = "wasm32")]
#[wasm_bindgen::prelude::wasm_bindgen(inline_js = r#"
export async function subgroups() {
    const adapter = await navigator.gpu?.requestAdapter();
    if (!adapter?.features.has("subgroups")) return false;
    const request = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = function (descriptor) {
        return request.call(this, { ...descriptor, requiredFeatures: [...(descriptor?.requiredFeatures ?? []), "subgroups"] });
    };
    return true;
}
"#)]
extern "C" {
    async fn subgroups() -> wasm_bindgen::JsValue;
}

#[cfg(not(target_arch = "wasm32"))]
pub async fn has_subgroups() -> bool {
    true
}

#[cfg(target_arch = "wasm32")]
pub async fn has_subgroups() -> bool {
    subgroups().await.is_truthy()
}

/// The variants that need nothing of a device; those of a product in the fewest dispatches.
pub const PLAIN_TEAM: Variants =
    Variants { rows: Rows::Singles, preparation: InputPreparation::Inline, tiles: Tiles::Pairs };

/// A GPU within WebGPU's default limits, or `None`, and a line that says so, where the machine has none at all.
pub async fn open() -> Option<Gpu> {
    open_with(&DeviceOptions { default_limits: true, ..Default::default() }, Some(PLAIN_TEAM)).await
}

pub async fn open_with(options: &DeviceOptions, forced: Option<Variants>) -> Option<Gpu> {
    match open_shared(options, forced).await {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            eprintln!("SKIPPED, there is no GPU, not even one in software: {error}");
            None
        }
    }
}

thread_local! {
    /// Devices that tests share in a browser, where they run one after another: compiling takes most of their time.
    static SHARED: RefCell<Vec<(Variants, Gpu)>> = const { RefCell::new(Vec::new()) };
}

async fn open_shared(options: &DeviceOptions, forced: Option<Variants>) -> Result<Gpu> {
    let known = |variants| {
        SHARED
            .with_borrow(|shared| shared.iter().find(|(own, _)| *own == variants).map(|(_, gpu)| gpu.clone()))
    };
    if let Some(gpu) = forced.and_then(known) {
        return Ok(gpu);
    }
    let gpu = Gpu::open(options, forced).await?;
    if let (true, Some(variants)) = (cfg!(target_arch = "wasm32"), forced) {
        SHARED.with_borrow_mut(|shared| shared.push((variants, gpu.clone())));
    }
    Ok(gpu)
}

/// One device for each way to compute linears that it can run, with every way to multiply tiles among them.
pub async fn open_variants() -> Vec<Gpu> {
    let mut gpus = Vec::new();
    let has_subgroups = has_subgroups().await;
    for rows in [Rows::Singles, Rows::Packed(Team::Workgroup(16)), Rows::Packed(Team::Subgroup)] {
        let is_subgroup = rows == Rows::Packed(Team::Subgroup);
        if is_subgroup && !has_subgroups {
            eprintln!("SKIPPED {rows}: this GPU has no subgroups");
            continue;
        }
        let preparation = match rows {
            Rows::Packed(Team::Workgroup(_)) => InputPreparation::Separate,
            Rows::Packed(_) | Rows::Singles => InputPreparation::Inline,
        };
        // Kernels of tiles know no teams, and compiling them takes most of the time.
        let tiles = match rows {
            Rows::Singles => Tiles::Pairs,
            Rows::Packed(Team::Subgroup) => Tiles::SharedPairs,
            Rows::Packed(_) => Tiles::Packed,
        };
        let options =
            DeviceOptions { default_limits: !is_subgroup, subgroups: is_subgroup, ..Default::default() };
        match open_shared(&options, Some(Variants { rows, preparation, tiles })).await {
            Ok(gpu) => gpus.push(gpu),
            Err(error) => eprintln!("SKIPPED {rows}: {error}"),
        }
    }
    gpus
}
