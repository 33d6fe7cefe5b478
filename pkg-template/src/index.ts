// The package's entry in browsers.

import { browserPlatform } from "./browser-platform.js";
import type { EngineHost } from "./engine.js";
import { InvalidArgumentError, UnsupportedBrowserError } from "./errors.js";
import { loadModelIn } from "./load-model.js";
import type { Model } from "./model.js";
import type { LoadOptions, ModelSource } from "./types.js";
import { workerHost } from "./worker/client.js";
import { moduleWorker, scriptUrl } from "./worker/module-worker.js";

export * from "./exports.js";

const createWorker = () =>
	moduleWorker(
		"worker.js",
		import.meta.url,
		// Bundlers recognise a worker by exactly this form.
		() => new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "sterna" }),
	);

async function host({ worker = true, fetch }: LoadOptions): Promise<EngineHost> {
	if (!worker) {
		const { localHost } = await import("./local-engine.js");
		return localHost(browserPlatform(fetch));
	}
	if (fetch) {
		throw new InvalidArgumentError(
			"loadModel: a 'fetch' function cannot be given to a worker; set 'worker: false' with it.",
		);
	}
	if (typeof Worker !== "function") {
		throw new UnsupportedBrowserError("There are no Web Workers here: set 'worker: false'.");
	}
	return workerHost(createWorker, scriptUrl("worker.js", import.meta.url));
}

/**
 * Loads a model.
 *
 * ```ts
 * const model = await loadModel("hf:owner/repo/model.gguf", { onProgress: ({ fraction }) => bar(fraction) });
 * const { text } = await model.chat([{ role: "user", content: "What is the capital of France?" }]);
 * ```
 *
 * In a browser the model runs in a Web Worker of its own; in Node in-process.
 *
 * @param source a URL, `hf:` reference, `File`, list of `File`s, `Blob`, bytes, or in Node a path
 * @returns the model, ready to use; {@link Model.dispose} frees it
 * @throws SternaError with the code `network`, `unsupported_format`, `corrupt_file`, `out_of_memory`,
 * `invalid_argument` (also for options that do not exist), `unsupported_browser`, `aborted` or `internal`
 */
export function loadModel(source: ModelSource, options: LoadOptions = {}): Promise<Model> {
	return loadModelIn({ hasFileSystem: false, host }, source, options);
}
