// A load that is going on: a promise of the model that can be paused, resumed and aborted.

import { AbortedError } from "./errors.js";
import type { Model } from "./model.js";
import { Gate } from "./net/gate.js";

/**
 * A load that is going on, made by {@link loadModel}. Await it for the model.
 *
 * ```ts
 * const load = loadModel("hf:owner/repo");
 * pauseButton.onclick = () => (load.isPaused ? load.resume() : load.pause());
 * const model = await load;
 * ```
 */
export class ModelLoad extends Promise<Model> {
	readonly #gate: Gate;
	readonly #controller: AbortController;

	/** What `then` and the like make of it is a plain promise. */
	static override get [Symbol.species](): PromiseConstructor {
		return Promise;
	}

	/** @internal */
	constructor(outer: AbortSignal | undefined, start: (signal: AbortSignal, gate: Gate) => Promise<Model>) {
		const gate = new Gate();
		const controller = new AbortController();
		super((resolve, reject) => {
			const forward = () => controller.abort(outer?.reason);
			if (outer instanceof AbortSignal) {
				if (outer.aborted) forward();
				outer.addEventListener("abort", forward, { once: true, signal: controller.signal });
			}
			start(controller.signal, gate)
				.finally(() => outer instanceof AbortSignal && outer.removeEventListener("abort", forward))
				.then(resolve, reject);
		});
		this.#gate = gate;
		this.#controller = controller;
	}

	/** Whether the load was paused. */
	get isPaused(): boolean {
		return this.#gate.isPaused;
	}

	/** Closes all connections and stops reading. What has been stored stays. */
	pause(): void {
		this.#gate.pause();
	}

	/** Goes on where the load was paused; a download continues with what is missing. */
	resume(): void {
		this.#gate.resume();
	}

	/** Stops the load; the promise rejects with an `aborted` error. `reason`, a string, becomes its message. */
	abort(reason?: string): void {
		this.#controller.abort(reason ?? new AbortedError("The load was aborted."));
	}
}
