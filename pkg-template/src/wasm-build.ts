// The builds of the engine's wasm module, apart by what they need. A visitor downloads one.

import { relaxedSimd } from "wasm-feature-detect";
import { NetworkError } from "./errors.js";
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

/** A build's bindings, a script of their own. */
export async function bindings({ isShared }: Build): Promise<WasmApi> {
	try {
		return await (isShared ? import("sterna-wasm-threads") : import("sterna-wasm"));
	} catch (cause) {
		throw new NetworkError(
			`A script of the engine could not be loaded (${(cause as Error).message}). Check the connection and load the model again; serve all of the package's scripts.`,
			import.meta.url,
			{ cause },
		);
	}
}
