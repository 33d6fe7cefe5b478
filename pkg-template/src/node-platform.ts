// Where Node gets the wasm module, its threads, and files from.

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { InvalidArgumentError } from "./errors.js";
import { openPath } from "./files/paths.js";
import { Instance, Instances } from "./instances.js";
import type { Platform } from "./platform.js";
import { threadCount } from "./threads/count.js";
import { sharedMemory } from "./threads/memory.js";
import type { StartThread } from "./threads/team.js";
import { type Build, bindings, checkModule, chooseBuild, explainCompileError } from "./wasm-build.js";

async function readModule(url: URL) {
	try {
		return await readFile(url);
	} catch (cause) {
		throw new InvalidArgumentError(
			`The engine's module could not be read from ${url}: ${(cause as Error).message}. In Node the option 'wasmUrl' must be a file: address.`,
			{ cause },
		);
	}
}

async function instantiate(build: Build, wasmUrl: string | undefined): Promise<Instance> {
	const api = await bindings(build);
	// Node's entry lies one folder below the wasm modules.
	const url = new URL(build.file, wasmUrl ?? new URL("..", import.meta.url));
	const module = await WebAssembly.compile(await readModule(url)).catch((cause) =>
		explainCompileError(cause, url.href),
	);
	checkModule(module, url.href);
	const shared = build.isShared ? sharedMemory() : undefined;
	const { memory } = await api.default({ module_or_path: module, memory: shared });
	return new Instance(api, memory, module);
}

const startThread: StartThread = (start) => {
	const worker = new Worker(new URL("./thread.js", import.meta.url), { workerData: start });
	// A model that is not disposed of does not keep the process alive.
	worker.unref();
	return {
		onReport: (listener) => worker.on("message", listener),
		onError: (listener) => worker.on("error", ({ message }) => listener(message)),
		terminate: () => worker.terminate(),
	};
};

const instances = new Instances();

/** The platform of a Node process: a wasm module for each build, paths, in-process. */
export function nodePlatform(): Platform {
	return {
		fetch: (...args) => fetch(...args),
		openPath,
		startThread,
		async instantiate(wasmUrl, wanted) {
			// A thread that sleeps keeps a process from ending: a program that may not dispose of its model asks for
			// threads itself.
			const threads = wanted === "auto" ? 1 : threadCount(wanted, availableParallelism());
			const build = await chooseBuild(threads);
			const instance = await instances.get(build.file, () => instantiate(build, wasmUrl));
			return { instance, threads };
		},
	};
}
