/**
 * Owns the model of the page. A new model is loaded beside the old one, which keeps answering until the new
 * one is ready and is freed once its last answer has ended.
 */
import { type LoadProgress, loadModel, type Model, type ModelLoad } from "sterna";
import { isAbort } from "./errors.ts";
import type { NamedSource } from "./sources.ts";

export interface HostEvents {
	/** A load began (`name`), or none is running any more (`undefined`). */
	onLoading(name: string | undefined): void;
	onProgress(progress: LoadProgress): void;
	/** Another model answers from now on, or none. */
	onModel(held: HeldModel | undefined): void;
	onLoadError(error: unknown, wanted: NamedSource): void;
}

/** A loaded model that is freed when nobody needs it: neither the page for new answers nor a running answer. */
export class HeldModel {
	/** Where it came from, to load it again. */
	readonly origin: NamedSource;
	readonly model: Model;
	#holders = 1;

	constructor(origin: NamedSource, model: Model) {
		this.origin = origin;
		this.model = model;
	}

	get name(): string {
		return this.origin.name;
	}

	hold(): void {
		this.#holders += 1;
	}

	async release(): Promise<void> {
		this.#holders -= 1;
		if (this.#holders === 0) await this.model.dispose();
	}
}

/** A load that is going on. */
interface RunningLoad {
	controller: AbortController;
	load?: ModelLoad;
}

export class ModelHost {
	readonly #events: HostEvents;
	#current: HeldModel | undefined;
	#loading: RunningLoad | undefined;

	constructor(events: HostEvents) {
		this.#events = events;
	}

	get current(): HeldModel | undefined {
		return this.#current;
	}

	/** Loads a model and makes it the current one. A load that is still running gives way. */
	async load(wanted: NamedSource): Promise<void> {
		this.cancel();
		const controller = new AbortController();
		const { signal } = controller;
		const loading: RunningLoad = { controller };
		this.#loading = loading;
		this.#events.onLoading(wanted.name);
		try {
			const onProgress = (progress: LoadProgress) => {
				if (!signal.aborted) this.#events.onProgress(progress);
			};
			loading.load = loadModel(wanted.source, { signal, onProgress });
			const model = await loading.load;
			if (signal.aborted) await model.dispose();
			else this.#replace(new HeldModel(wanted, model));
		} catch (error) {
			if (!signal.aborted && !isAbort(error)) this.#events.onLoadError(error, wanted);
		} finally {
			if (this.#loading === loading) {
				this.#loading = undefined;
				this.#events.onLoading(undefined);
			}
		}
	}

	/** Pauses the running load, or lets it go on. */
	togglePause(): void {
		const load = this.#loading?.load;
		if (load?.isPaused) load.resume();
		else load?.pause();
	}

	/** Ends the running load; the current model stays. */
	cancel(): void {
		if (!this.#loading) return;
		this.#loading.controller.abort();
		this.#loading = undefined;
		this.#events.onLoading(undefined);
	}

	/** Frees the current model, so that one that does not fit beside it can be loaded. */
	unload(): void {
		this.#replace(undefined);
	}

	#replace(next: HeldModel | undefined): void {
		const previous = this.#current;
		this.#current = next;
		this.#events.onModel(next);
		void previous?.release();
	}
}
