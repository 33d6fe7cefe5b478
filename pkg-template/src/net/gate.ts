// A load's brake: while it is closed, nothing is fetched and nothing is read.

import { abortedBy, throwIfAborted } from "../errors.js";

/** Open until it is paused. */
export class Gate {
	#isPaused = false;
	readonly #listeners = new Set<() => void>();

	get isPaused(): boolean {
		return this.#isPaused;
	}

	pause(): void {
		this.#set(true);
	}

	resume(): void {
		this.#set(false);
	}

	/** Calls `listener` at each change; returns a function that ends this. */
	onChange(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** Resolves when the gate is open; at once, as a rule. */
	async opened(signal: AbortSignal | undefined): Promise<void> {
		throwIfAborted(signal);
		while (this.#isPaused) {
			await new Promise<void>((resolve, reject) => {
				const end = () => {
					stop();
					signal?.removeEventListener("abort", onAbort);
				};
				const onAbort = () => {
					end();
					reject(abortedBy(signal!));
				};
				const stop = this.onChange(() => {
					end();
					resolve();
				});
				signal?.addEventListener("abort", onAbort, { once: true });
			});
		}
	}

	#set(paused: boolean): void {
		if (this.#isPaused === paused) return;
		this.#isPaused = paused;
		for (const listener of [...this.#listeners]) listener();
	}
}
