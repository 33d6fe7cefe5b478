// The builds of the engine's wasm module. Each needs more of the browser than the one before, and a visitor
// downloads one.

import type { SharedWasmApi, WasmApi } from "./wasm-api.js";

/** Whether a build computes in threads, which share its memory. */
export type Build = "single" | "threads";

/** The name of a build's file, beside the package's scripts. */
export const FILE_NAMES: Record<Build, string> = {
	single: "sterna_bg.wasm",
	threads: "sterna_threads_bg.wasm",
};

/** A build's bindings. */
export function bindings(build: "threads"): Promise<SharedWasmApi>;
export function bindings(build: Build): Promise<WasmApi | SharedWasmApi>;
export function bindings(build: Build): Promise<WasmApi | SharedWasmApi> {
	return build === "threads" ? import("sterna-wasm-threads") : import("sterna-wasm");
}
