// The builds of the engine's wasm module, apart by what they need. A visitor downloads one.

import { relaxedSimd, simd } from "wasm-feature-detect";
import { NetworkError, UnsupportedBrowserError } from "./errors.js";
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

/** The error for a file in the place of the module. */
function notTheModule(url: string, options?: ErrorOptions): NetworkError {
	return new NetworkError(
		`What is at ${url} is not Sterna's WebAssembly module. Serve the package's .wasm files beside its scripts, or let 'wasmUrl' point at them; they must be of the same version as the scripts.`,
		url,
		options,
	);
}

/** Tells whether the browser or the file is to blame for a module that cannot be compiled. */
export async function explainCompileError(cause: unknown, url: string): Promise<never> {
	if (!(cause instanceof WebAssembly.CompileError)) throw cause;
	if (await simd()) throw notTheModule(url, { cause });
	throw new UnsupportedBrowserError(
		`This browser cannot run the engine; it needs WebAssembly with SIMD (${cause.message}). Update the browser.`,
		{ cause },
	);
}

/** Refuses another module before it meets the bindings, which could not be given ours afterwards. */
export function checkModule(module: WebAssembly.Module, url: string): void {
	const isOurs = WebAssembly.Module.exports(module).some(({ name }) => name === "loader_new");
	if (!isOurs) throw notTheModule(url);
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
