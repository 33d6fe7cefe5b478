// The package's entry in Node: in-process, and paths are sources too. Types and documentation are those of
// `index.ts`.

import { InvalidArgumentError } from "./errors.js";
import { loadModelIn } from "./load-model.js";
import { localHost } from "./local-engine.js";
import type { Model } from "./model.js";
import { nodePlatform } from "./node-platform.js";
import type { LoadOptions, ModelSource } from "./types.js";

export * from "./exports.js";

/** Loads a model in-process. */
export function loadModel(source: ModelSource, options: LoadOptions = {}): Promise<Model> {
	return loadModelIn({ hasFileSystem: true, host }, source, options);
}

function host({ worker, fetch }: LoadOptions) {
	if (worker) {
		throw new InvalidArgumentError(
			"loadModel: 'worker: true' needs a browser; in Node models run in-process.",
		);
	}
	return localHost(nodePlatform(fetch));
}
