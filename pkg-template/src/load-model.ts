// `loadModel` and `estimate`, whatever the surroundings: check the options and choose where the engine runs.

import { watcher } from "./callbacks.js";
import type { EngineHost } from "./engine.js";
import { describeSource, modelName } from "./files/source.js";
import { engineLoadOptions, hubEndpoint, LOAD_RULES, SOURCE_RULES } from "./load-options.js";
import { Model } from "./model.js";
import { ModelLoad } from "./model-load.js";
import type { Gate } from "./net/gate.js";
import type { Estimate, EstimateOptions, LoadOptions, ModelSource } from "./types.js";
import { checkOptions } from "./validate.js";

/** Where engines can run. */
export interface Surroundings {
	/** Whether strings may be paths. */
	hasFileSystem: boolean;
	/** Chooses the host for the options, or refuses them. */
	host(options: LoadOptions): EngineHost | Promise<EngineHost>;
	/** Asks that what is stored is not evicted. */
	persist?(): Promise<unknown>;
}

/** Loads a model in the given surroundings. */
export function loadModelIn(
	surroundings: Surroundings,
	source: ModelSource,
	options: LoadOptions,
): ModelLoad {
	return new ModelLoad(options?.signal, (signal, gate) => load(surroundings, source, options, signal, gate));
}

async function load(
	surroundings: Surroundings,
	source: ModelSource,
	options: LoadOptions,
	signal: AbortSignal,
	gate: Gate,
): Promise<Model> {
	checkOptions("loadModel", options, LOAD_RULES);
	// A drop's data is gone after the first await.
	const describing = describeSource(source, {
		hasFileSystem: surroundings.hasFileSystem,
		endpoint: hubEndpoint(options),
	});
	const spec = await describing;
	if (typeof options.cache === "object" && options.cache.persist) await surroundings.persist?.();
	const host = await surroundings.host(options);
	const engine = await host.load(spec, engineLoadOptions(options, modelName(spec)), {
		signal,
		gate,
		fetch: options.fetch,
		onEvent: watcher(options.onProgress),
	});
	return new Model(engine);
}

/** Estimates a load in the given surroundings. */
export async function estimateIn(
	surroundings: Surroundings,
	source: ModelSource,
	options: EstimateOptions,
): Promise<Estimate> {
	checkOptions("estimate", options, SOURCE_RULES);
	const spec = await describeSource(source, {
		hasFileSystem: surroundings.hasFileSystem,
		endpoint: hubEndpoint(options),
	});
	const host = await surroundings.host(options);
	const { signal, fetch } = options;
	return host.estimate(spec, engineLoadOptions(options, modelName(spec)), { signal, fetch });
}
