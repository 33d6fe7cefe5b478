// The package's entry in browsers.

import { browserPlatform } from "./browser-platform.js";
import { type Cache, cacheWith } from "./cache.js";
import type { EngineHost } from "./engine.js";
import { UnsupportedBrowserError } from "./errors.js";
import { estimateIn, loadModelIn, type Surroundings } from "./load-model.js";
import type { ModelLoad } from "./model-load.js";
import type { Estimate, EstimateOptions, LoadOptions, ModelSource } from "./types.js";
import { workerCheck, workerHost } from "./worker/client.js";
import { moduleWorker, scriptUrl } from "./worker/module-worker.js";

export * from "./exports.js";

const createWorker = () =>
	moduleWorker(
		"worker.js",
		import.meta.url,
		// Bundlers recognise a worker by exactly this form.
		() => new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "sterna" }),
	);

const workerUrl = scriptUrl("worker.js", import.meta.url);

/** What is stored of models on this device, for this site. */
export const cache: Cache = cacheWith(workerCheck(createWorker, workerUrl));

async function host({ worker = true }: LoadOptions): Promise<EngineHost> {
	if (!worker) {
		const { localHost } = await import("./local-host.js");
		return localHost(browserPlatform());
	}
	if (typeof Worker !== "function") {
		throw new UnsupportedBrowserError("There are no Web Workers here: set 'worker: false'.");
	}
	return workerHost(createWorker, workerUrl);
}

const surroundings: Surroundings = {
	hasFileSystem: false,
	host,
	persist: async () => navigator.storage?.persist?.(),
};

/**
 * Loads a model.
 *
 * ```ts
 * const model = await loadModel("hf:owner/repo/model.gguf", { onProgress: ({ fraction }) => bar(fraction) });
 * const { text } = await model.chat([{ role: "user", content: "What is the capital of France?" }]);
 * ```
 *
 * In a browser the model runs in a Web Worker of its own, and what it is loaded from is kept for the next visit;
 * in Node it runs in-process, and nothing is kept.
 *
 * @returns a promise of the model, ready to use, that can also be paused, resumed and aborted;
 * {@link Model.dispose} frees the model
 * @throws SternaError (the promise rejects) with the code `network`, `unsupported_format`, `corrupt_file`,
 * `integrity_mismatch`, `quota_exceeded`, `out_of_memory`, `invalid_argument` (also for options that do not
 * exist), `unsupported_browser`, `aborted` or `internal`
 */
export function loadModel(source: ModelSource, options: LoadOptions = {}): ModelLoad {
	return loadModelIn(surroundings, source, options);
}

/**
 * What loading a model would take: bytes to download, memory, and whether it can be expected to run here. Only the
 * headers of its files are read.
 *
 * ```ts
 * const { fits, downloadBytes, advice } = await estimate("hf:owner/repo");
 * if (!fits) show(advice.join(" "));
 * ```
 *
 * @throws SternaError as {@link loadModel}
 */
export function estimate(source: ModelSource, options: EstimateOptions = {}): Promise<Estimate> {
	return estimateIn(surroundings, source, options);
}
