// `loadModel`, whatever the surroundings: checks the options and chooses where the engine runs.

import { watcher } from "./callbacks.js";
import { defined } from "./defined.js";
import type { EngineHost } from "./engine.js";
import { InvalidArgumentError } from "./errors.js";
import { describeSource } from "./files/source.js";
import { Model } from "./model.js";
import type { LoadOptions, ModelSource } from "./types.js";
import { abortSignal, checkOptions, either, integer, ofType, oneOf, type Rule } from "./validate.js";

const url: Rule = (value) => (value instanceof URL ? undefined : "must be a URL");

const LOAD_RULES = {
	device: oneOf("auto", "wasm", "webgpu"),
	powerPreference: oneOf("auto", "high-performance", "low-power"),
	contextLength: integer(1, 2 ** 32 - 1),
	kvCache: oneOf("f32", "f16", "q8"),
	activations: oneOf("auto", "int8", "float"),
	embedding: oneOf("auto", "file", "f16", "q8", "q4"),
	i2sLayout: oneOf("x86", "arm"),
	threads: either(oneOf("auto"), integer(1)),
	onProgress: ofType("function"),
	signal: abortSignal,
	fetch: ofType("function"),
	worker: ofType("boolean"),
	wasmUrl: either(ofType("string"), url),
};

/** The absolute address of the wasm modules. */
function absolute(wasmUrl: string | URL, base: string | undefined): string {
	if (URL.canParse(wasmUrl, base)) return new URL(wasmUrl, base).href;
	throw new InvalidArgumentError(
		`loadModel: the option 'wasmUrl' is not an address: '${wasmUrl}'. Give that of the folder with the package's .wasm files.`,
	);
}

/** Where engines can run. */
export interface Surroundings {
	/** Whether strings may be paths. */
	hasFileSystem: boolean;
	/** Chooses the host for the options, or refuses them. */
	host(options: LoadOptions): EngineHost | Promise<EngineHost>;
}

/** Loads a model in the given surroundings. */
export async function loadModelIn(
	surroundings: Surroundings,
	source: ModelSource,
	options: LoadOptions,
): Promise<Model> {
	checkOptions("loadModel", options, LOAD_RULES);
	const { contextLength, kvCache, activations, embedding, i2sLayout, wasmUrl, signal, onProgress } = options;
	const { device = "auto", powerPreference = "auto", threads = "auto" } = options;
	const spec = describeSource(source, surroundings.hasFileSystem);
	const host = await surroundings.host(options);
	const base = globalThis.document?.baseURI ?? globalThis.location?.href;
	const engine = await host.load(
		spec,
		{
			...defined({ contextLength, kvCache, activations, embedding, i2sLayout }),
			device,
			powerPreference,
			threads,
			wasmUrl: wasmUrl === undefined ? undefined : absolute(wasmUrl, base),
		},
		{ signal, onEvent: watcher(onProgress) },
	);
	return new Model(engine);
}
