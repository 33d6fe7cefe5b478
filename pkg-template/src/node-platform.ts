// Where Node gets the wasm module and files from.

import { readFile } from "node:fs/promises";
import { relaxedSimd } from "wasm-feature-detect";
import { openPath } from "./files/paths.js";
import type { Platform, WasmInstance } from "./local-engine.js";
import type { WasmApi } from "./wasm-api.js";

let instance: Promise<WasmInstance> | undefined;

async function instantiate(wasmUrl: string | undefined): Promise<WasmInstance> {
	const api: WasmApi = await import("sterna-wasm");
	// Node's entry lies one folder below the wasm modules.
	const built = (await relaxedSimd()) ? "../sterna_relaxed_bg.wasm" : "../sterna_bg.wasm";
	const url = new URL(wasmUrl ?? built, import.meta.url);
	const { memory } = await api.default({ module_or_path: await readFile(url) });
	return { api, memory };
}

/** The platform of a Node process: one wasm module, paths, in-process. */
export function nodePlatform(fetcher: typeof fetch = fetch): Platform {
	return {
		fetch: fetcher,
		openPath,
		instantiate(wasmUrl) {
			instance ??= instantiate(wasmUrl).catch((error) => {
				instance = undefined;
				throw error;
			});
			return instance;
		},
	};
}
