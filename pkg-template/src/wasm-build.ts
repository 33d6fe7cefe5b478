// The builds of the engine's wasm module, apart by what they need. A visitor downloads one.

import { relaxedSimd } from "wasm-feature-detect";
import type { WasmApi } from "./wasm-api.js";

/** A build: with relaxed SIMD or without, and for one thread or for several, which share its memory. */
export interface Build {
	file:
		| "sterna_bg.wasm"
		| "sterna_relaxed_bg.wasm"
		| "sterna_threads_bg.wasm"
		| "sterna_relaxed_threads_bg.wasm";
	isShared: boolean;
}

/** The build that runs best here. */
export async function chooseBuild(threads: number): Promise<Build> {
	const isRelaxed = await relaxedSimd();
	if (threads > 1) {
		const file = isRelaxed ? "sterna_relaxed_threads_bg.wasm" : "sterna_threads_bg.wasm";
		return { file, isShared: true };
	}
	return { file: isRelaxed ? "sterna_relaxed_bg.wasm" : "sterna_bg.wasm", isShared: false };
}

/** A build's bindings. */
export function bindings({ isShared }: Build): Promise<WasmApi> {
	return isShared ? import("sterna-wasm-threads") : import("sterna-wasm");
}
