// The package's entry in Node: in-process, and paths are sources too. Types and documentation are those of
// `index.ts`.

import { type Cache, cacheWith } from "./cache.js";
import { InvalidArgumentError } from "./errors.js";
import { estimateIn, loadModelIn, type Surroundings } from "./load-model.js";
import { localHost } from "./local-host.js";
import type { ModelLoad } from "./model-load.js";
import { nodePlatform } from "./node-platform.js";
import { checkHere } from "./store/check.js";
import type { Estimate, EstimateOptions, LoadOptions, ModelSource } from "./types.js";

export * from "./exports.js";

/** What is stored of models: nothing, in Node. */
export const cache: Cache = cacheWith(checkHere);

const surroundings: Surroundings = { hasFileSystem: true, host };

/** Loads a model in-process. */
export function loadModel(source: ModelSource, options: LoadOptions = {}): ModelLoad {
	return loadModelIn(surroundings, source, options);
}

/** What loading a model would take. */
export function estimate(source: ModelSource, options: EstimateOptions = {}): Promise<Estimate> {
	return estimateIn(surroundings, source, options);
}

function host({ worker }: LoadOptions) {
	if (worker) {
		throw new InvalidArgumentError(
			"loadModel: 'worker: true' needs a browser; in Node models run in-process.",
		);
	}
	return localHost(nodePlatform());
}
