// One model does one thing at a time: jobs wait for their turn here, and each can be aborted while it waits
// and while it runs.

import { type AbortedError, abortedBy, throwIfAborted } from "./errors.js";

/** Resolves when the promise settles; rejects as soon as the signal aborts. */
function settledOrAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		const onAbort = () => reject(abortedBy(signal));
		signal.addEventListener("abort", onAbort, { once: true });
		promise.finally(() => {
			signal.removeEventListener("abort", onAbort);
			resolve();
		});
	});
}

/** Runs jobs one after another, in the order in which they came. */
export class JobQueue {
	#tail: Promise<unknown> = Promise.resolve();
	readonly #unfinished = new Set<AbortController>();

	/** Runs a job in its turn. Its signal aborts when the given one does, and when the queue is closed. */
	async run<T>(signal: AbortSignal | undefined, job: (signal: AbortSignal) => Promise<T>): Promise<T> {
		throwIfAborted(signal);
		const controller = new AbortController();
		const forward = () => controller.abort(signal?.reason);
		signal?.addEventListener("abort", forward, { once: true });
		this.#unfinished.add(controller);
		const before = this.#tail;
		const result = settledOrAborted(before, controller.signal).then(() => {
			throwIfAborted(controller.signal);
			return job(controller.signal);
		});
		this.#tail = Promise.allSettled([before, result]);
		try {
			return await result;
		} finally {
			signal?.removeEventListener("abort", forward);
			this.#unfinished.delete(controller);
		}
	}

	/** Aborts what runs and what waits, and resolves when nothing runs any more. */
	async close(reason: AbortedError): Promise<void> {
		for (const controller of this.#unfinished) controller.abort(reason);
		await this.#tail;
	}
}
