// Where a browser gets the wasm module and its threads from, in a page or in a worker.

import { threads as detectThreads } from "wasm-feature-detect";
import { NetworkError } from "./errors.js";
import { Instance, Instances } from "./instances.js";
import type { Platform } from "./platform.js";
import { openStore } from "./store/open-store.js";
import { threadCount } from "./threads/count.js";
import { sharedMemory } from "./threads/memory.js";
import type { StartThread } from "./threads/team.js";
import { type Build, bindings, checkModule, chooseBuild, explainCompileError } from "./wasm-build.js";
import { moduleWorker } from "./worker/module-worker.js";

/** Bundlers look for these expressions as they are written here. */
const OWN_URLS: Record<Build["file"], () => URL> = {
	"sterna_bg.wasm": () => new URL("./sterna_bg.wasm", import.meta.url),
	"sterna_relaxed_bg.wasm": () => new URL("./sterna_relaxed_bg.wasm", import.meta.url),
	"sterna_threads_bg.wasm": () => new URL("./sterna_threads_bg.wasm", import.meta.url),
	"sterna_relaxed_threads_bg.wasm": () => new URL("./sterna_relaxed_threads_bg.wasm", import.meta.url),
};

async function fetchModule({ file }: Build, wasmUrl: string | undefined): Promise<Response> {
	const url = (wasmUrl === undefined ? OWN_URLS[file]() : new URL(file, wasmUrl)).href;
	let response: Response;
	try {
		response = await fetch(url);
	} catch (cause) {
		throw new NetworkError(`The engine could not be fetched from ${url}.`, url, { cause });
	}
	if (!response.ok || response.headers.get("content-type")?.startsWith("text/html")) {
		throw new NetworkError(
			`The engine is not at ${url} (HTTP status ${response.status}). Serve the package's .wasm files beside its scripts, or give their address as 'wasmUrl'.`,
			url,
			{ status: response.status },
		);
	}
	return response;
}

/** Compiles while it downloads, where the server gives the module's content type. */
async function compile(response: Response): Promise<WebAssembly.Module> {
	const isStreamable = response.headers.get("content-type") === "application/wasm";
	if (isStreamable) return WebAssembly.compileStreaming(response);
	return WebAssembly.compile(await response.arrayBuffer());
}

async function instantiate(build: Build, wasmUrl: string | undefined): Promise<Instance> {
	const api = await bindings(build);
	const response = await fetchModule(build, wasmUrl);
	const module = await compile(response).catch((cause) => explainCompileError(cause, response.url));
	checkModule(module, response.url);
	const shared = build.isShared ? sharedMemory() : undefined;
	const { memory } = await api.default({ module_or_path: module, memory: shared });
	return new Instance(api, memory, module);
}

/**
 * How many threads the engine may have here. Only an isolated page's workers may share memory, and the page
 * itself may not wait for another thread.
 */
async function grantThreads(wanted: "auto" | number): Promise<number> {
	const mayWait = globalThis.document === undefined;
	if (!mayWait || !globalThis.crossOriginIsolated || !(await detectThreads())) return 1;
	return threadCount(wanted, navigator.hardwareConcurrency);
}

const startThread: StartThread = (start) => {
	const worker = moduleWorker(
		"thread.js",
		import.meta.url,
		// Bundlers recognise a worker by exactly this form.
		() => new Worker(new URL("./thread.js", import.meta.url), { type: "module", name: "sterna-thread" }),
	);
	worker.postMessage(start);
	return {
		onReport(listener) {
			worker.onmessage = ({ data }) => listener(data);
		},
		onError(listener) {
			worker.onerror = (event) => listener(event.message || "its script could not be loaded");
		},
		terminate: () => worker.terminate(),
	};
};

const instances = new Instances();

/** The platform of a page or a worker. A failed start is tried anew by the next load. */
export function browserPlatform(): Platform {
	return {
		fetch: (...args) => fetch(...args),
		openStore,
		startThread,
		async instantiate(wasmUrl, wanted) {
			const threads = await grantThreads(wanted);
			const build = await chooseBuild(threads);
			const instance = await instances.get(build.file, () => instantiate(build, wasmUrl));
			return { instance, threads };
		},
	};
}
