// The instances of the wasm module in this thread, one for each build. After a trap the state of an instance
// is unknown: nothing in it is touched again, and the next load gets a fresh one.

import { isTrap, type SternaError, toSternaError } from "./errors.js";
import type { WasmApi } from "./wasm-api.js";

/** An instantiated module, which all models of a build in this thread share. */
export class Instance {
	readonly api: WasmApi;
	readonly memory: WebAssembly.Memory;
	readonly module: WebAssembly.Module;
	readonly #listeners = new Set<() => void>();
	#lost: SternaError | undefined;

	constructor(api: WasmApi, memory: WebAssembly.Memory, module: WebAssembly.Module) {
		this.api = api;
		this.memory = memory;
		this.module = module;
	}

	/** Why nothing in this instance may be touched any more; `undefined` while all is well. */
	get lost(): SternaError | undefined {
		return this.#lost;
	}

	/** Calls `listener` when the instance is lost. */
	onLost(listener: () => void): void {
		this.#listeners.add(listener);
	}

	/** Takes a listener back. */
	offLost(listener: () => void): void {
		this.#listeners.delete(listener);
	}

	/** The error as the package's own; when it is a trap, the instance is lost with it. */
	explain(error: unknown): SternaError {
		if (this.#lost) return this.#lost;
		const known = toSternaError(error);
		if (!isTrap(error)) return known;
		this.#lost = known;
		for (const listener of this.#listeners) listener();
		return known;
	}
}

/** The bindings know one instance at a time: puts a fresh one in the place of a lost one. */
async function renew({ api, module }: Instance): Promise<Instance> {
	api.__wbg_reset_state();
	const { memory } = await api.default({ module_or_path: module });
	return new Instance(api, memory, module);
}

/** Keeps instances, by the name of their build. */
export class Instances {
	readonly #known = new Map<string, Promise<Instance>>();
	readonly #lost = new Map<string, Instance>();

	/** A build's instance; a start that failed is tried anew by the next call. */
	get(build: string, create: () => Promise<Instance>): Promise<Instance> {
		return this.#known.get(build) ?? this.#start(build, create);
	}

	#start(build: string, create: () => Promise<Instance>): Promise<Instance> {
		const starting = this.#make(build, create).catch((error) => {
			this.#known.delete(build);
			throw error;
		});
		this.#known.set(build, starting);
		return starting;
	}

	async #make(build: string, create: () => Promise<Instance>): Promise<Instance> {
		const lost = this.#lost.get(build);
		const instance = await (lost ? renew(lost) : create());
		this.#lost.delete(build);
		instance.onLost(() => {
			this.#lost.set(build, instance);
			// At once, so that the lost instance's memory is given back, and that garbage collection, which frees
			// forgotten models, leaves it alone.
			this.#start(build, create).catch(() => undefined);
		});
		return instance;
	}
}
