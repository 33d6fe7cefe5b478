/** The package's version, put in by the bundler. */
declare const STERNA_VERSION: string;

/** The bindings that wasm-bindgen generates; the bundler resolves this name to them. */
declare module "sterna-wasm" {
	const api: import("./wasm-api.js").WasmApi;
	export default api.default;
	export const version: typeof api.version;
	export const Loader: typeof api.Loader;
	export const Model: typeof api.Model;
	export const __wbg_reset_state: typeof api.__wbg_reset_state;
}

/** The bindings of the builds with threads. */
declare module "sterna-wasm-threads" {
	const api: import("./wasm-api.js").SharedWasmApi;
	export default api.default;
	export const version: typeof api.version;
	export const Loader: typeof api.Loader;
	export const Model: typeof api.Model;
	export const __wbg_reset_state: typeof api.__wbg_reset_state;
	export const initSync: typeof api.initSync;
	export const serveThread: typeof api.serveThread;
	export const abandonThread: typeof api.abandonThread;
}
