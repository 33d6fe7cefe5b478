//! What tests of the GPU share: a test that is asynchronous in a browser and plain natively, and a device.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test binary uses its own part")]

use sterna::backend::gpu::{DeviceOptions, Gpu, InputPreparation, IntegerDot, Team, Variants};

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
pub const PLAIN_TEAM: Variants = Variants {
    team: Team::Lane,
    dot: IntegerDot::Singles,
    preparation: InputPreparation::Inline,
    tiles: IntegerDot::Singles,
};

/// A GPU within WebGPU's default limits, or `None`, and a line that says so, where the machine has none at all.
pub async fn open() -> Option<Gpu> {
    open_with(&DeviceOptions { default_limits: true, ..Default::default() }, Some(PLAIN_TEAM)).await
}

pub async fn open_with(options: &DeviceOptions, forced: Option<Variants>) -> Option<Gpu> {
    match Gpu::open(options, forced).await {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            eprintln!("SKIPPED, there is no GPU, not even one in software: {error}");
            None
        }
    }
}

/// One device for each way to compute linears that it can run, with every way to multiply tiles among them.
pub async fn open_variants() -> Vec<Gpu> {
    let mut gpus = Vec::new();
    let has_subgroups = has_subgroups().await;
    for team in [Team::Lane, Team::Workgroup(16), Team::Subgroup] {
        if team == Team::Subgroup && !has_subgroups {
            eprintln!("SKIPPED {team:?}: this GPU has no subgroups");
            continue;
        }
        let dot = if team == Team::Lane { IntegerDot::Singles } else { IntegerDot::Packed };
        let preparation = match team {
            Team::Workgroup(_) => InputPreparation::Separate,
            Team::Lane | Team::Subgroup => InputPreparation::Inline,
        };
        // Kernels of tiles know no teams, and compiling them takes most of the time.
        let tiles = match team {
            Team::Lane => IntegerDot::Singles,
            Team::Workgroup(_) if has_subgroups => IntegerDot::Singles,
            Team::Workgroup(_) | Team::Subgroup => IntegerDot::Packed,
        };
        let is_subgroup = team == Team::Subgroup;
        let options =
            DeviceOptions { default_limits: !is_subgroup, subgroups: is_subgroup, ..Default::default() };
        match Gpu::open(&options, Some(Variants { team, dot, preparation, tiles })).await {
            Ok(gpu) => gpus.push(gpu),
            Err(error) => eprintln!("SKIPPED {team:?}: {error}"),
        }
    }
    gpus
}
