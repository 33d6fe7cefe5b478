//! Rust values ↔ JavaScript values.

use crate::Error;
use crate::error::invalid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

/// A result whose error JavaScript can throw.
pub type JsResult<T> = Result<T, JsValue>;

impl From<Error> for JsValue {
    /// A JavaScript `Error` with the stable `code`.
    fn from(error: Error) -> Self {
        let thrown = js_sys::Error::new(&error.to_string());
        // Setting a property of a fresh object cannot fail.
        let _ = js_sys::Reflect::set(&thrown, &"code".into(), &error.code().into());
        thrown.into()
    }
}

/// A plain JavaScript object: maps are objects, integers numbers, and what is `None` is left undefined.
pub fn to_js(value: &impl Serialize) -> JsResult<JsValue> {
    let serializer = serde_wasm_bindgen::Serializer::new().serialize_maps_as_objects(true);
    value
        .serialize(&serializer)
        .map_err(|error| invalid!("the value cannot be shown to JavaScript: {error}").into())
}

/// Reads an argument; `undefined` and `null` are the default.
pub fn from_js<T: DeserializeOwned + Default>(value: JsValue, what: &str) -> JsResult<T> {
    if value.is_undefined() || value.is_null() {
        return Ok(T::default());
    }
    serde_wasm_bindgen::from_value(value).map_err(|error| invalid!("{what}: {error}").into())
}
