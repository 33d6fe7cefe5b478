// Where a browser gets the wasm module from, in a page or in a worker.

import { relaxedSimd } from "wasm-feature-detect";
import { NetworkError, UnsupportedBrowserError } from "./errors.js";
import type { Platform, WasmInstance } from "./local-engine.js";
import type { WasmApi } from "./wasm-api.js";

/** The build that this browser runs best. Bundlers look for both expressions as they are written here. */
async function builtFor(): Promise<URL> {
	return (await relaxedSimd())
		? new URL("./sterna_relaxed_bg.wasm", import.meta.url)
		: new URL("./sterna_bg.wasm", import.meta.url);
}

async function instantiate(wasmUrl: string | undefined): Promise<WasmInstance> {
	const api: WasmApi = await import("sterna-wasm");
	const url = wasmUrl ?? (await builtFor()).href;
	let response: Response;
	try {
		response = await fetch(url);
	} catch (cause) {
		throw new NetworkError(`The engine could not be fetched from ${url}.`, url, { cause });
	}
	if (!response.ok || response.headers.get("content-type")?.startsWith("text/html")) {
		throw new NetworkError(
			`The engine is not at ${url} (HTTP status ${response.status}). Serve the package's .wasm files beside its scripts, or give the address of one as 'wasmUrl'.`,
			url,
			{ status: response.status },
		);
	}
	try {
		const { memory } = await api.default({ module_or_path: response });
		return { api, memory };
	} catch (cause) {
		if (!(cause instanceof WebAssembly.CompileError)) throw cause;
		throw new UnsupportedBrowserError(
			`This browser cannot run the engine; it needs WebAssembly with SIMD (${cause.message}). Update the browser.`,
			{ cause },
		);
	}
}

let instance: Promise<WasmInstance> | undefined;

/** The platform of a page or a worker. A failed start is tried anew by the next load. */
export function browserPlatform(fetcher: typeof fetch = (...args) => fetch(...args)): Platform {
	return {
		fetch: fetcher,
		instantiate(wasmUrl) {
			instance ??= instantiate(wasmUrl).catch((error) => {
				instance = undefined;
				throw error;
			});
			return instance;
		},
	};
}
