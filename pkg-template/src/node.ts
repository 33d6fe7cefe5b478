// The package's entry in Node: in-process, and paths are sources too. Types and documentation are those of
// `index.ts`.

import { InvalidArgumentError } from "./errors.js";
import { estimateIn, loadModelIn, type Surroundings } from "./load-model.js";
import { localHost } from "./local-host.js";
import type { ModelLoad } from "./model-load.js";
import { nodePlatform } from "./node-platform.js";
import type { Estimate, EstimateOptions, LoadOptions, ModelSource } from "./types.js";

export { cache } from "./cache.js";
export * from "./exports.js";

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
