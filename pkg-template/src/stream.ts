// Generated text as it comes, and its result: one object that is an async iterable and a promise.

import { AbortedError } from "./errors.js";
import type { Delta, GenerationResult } from "./types.js";

/**
 * A running generation. Iterate over it for the text as it comes, await it for the whole result, or both:
 *
 * ```ts
 * const stream = model.chat(messages);
 * for await (const { text } of stream) show(text);
 * const { usage, timing } = await stream;
 * ```
 *
 * Generation begins at once, whether or not anyone listens. Every loop sees the text from its beginning, also
 * a second loop, and one that starts late. Leaving a loop early (`break`, `return`, an exception) aborts the
 * generation, unless another loop is still reading it. A generation that is aborted or fails throws its
 * {@link SternaError} in loops, after the pieces that came before it, and rejects the promise; when nobody
 * iterates or awaits, nothing is reported.
 */
export class ChatStream implements AsyncIterable<Delta>, PromiseLike<GenerationResult> {
	readonly #deltas: Delta[] = [];
	readonly #result: Promise<GenerationResult>;
	readonly #controller = new AbortController();
	readonly #loops = new Set<symbol>();
	#settled = false;
	#wake: (() => void)[] = [];

	/** @internal */
	constructor(
		start: (signal: AbortSignal, onDelta: (delta: Delta) => void) => Promise<GenerationResult>,
		signal: AbortSignal | undefined,
	) {
		const forward = () => this.#controller.abort(signal?.reason);
		if (signal?.aborted) forward();
		signal?.addEventListener("abort", forward, { once: true });
		this.#result = start(this.#controller.signal, (delta) => {
			this.#deltas.push(delta);
			this.#notify();
		}).finally(() => {
			signal?.removeEventListener("abort", forward);
			this.#settled = true;
			this.#notify();
		});
		this.#result.catch(() => undefined);
	}

	/** The text so far. */
	get text(): string {
		return this.#deltas.map((delta) => delta.text).join("");
	}

	/** Stops the generation within one step. `reason`, a string, becomes the error's message. */
	abort(reason?: string): void {
		this.#controller.abort(reason ?? new AbortedError("The generation was aborted."));
	}

	/** Iterates over the text from its beginning, waiting for what is still to come. */
	async *[Symbol.asyncIterator](): AsyncGenerator<Delta, void, undefined> {
		const loop = Symbol("loop");
		this.#loops.add(loop);
		let isComplete = false;
		try {
			for (let next = 0; ; ) {
				while (next < this.#deltas.length) yield this.#deltas[next++]!;
				if (this.#settled) break;
				await new Promise<void>((resolve) => this.#wake.push(resolve));
			}
			isComplete = true;
			await this.#result;
		} finally {
			this.#loops.delete(loop);
			if (!isComplete && !this.#settled && this.#loops.size === 0) {
				this.abort("The generation was aborted: its loop was left.");
			}
		}
	}

	/** Awaits the whole result. */
	// biome-ignore lint/suspicious/noThenProperty: a stream is also a promise of its result
	then<Value = GenerationResult, Other = never>(
		onFulfilled?: ((result: GenerationResult) => Value | PromiseLike<Value>) | null,
		onRejected?: ((reason: unknown) => Other | PromiseLike<Other>) | null,
	): Promise<Value | Other> {
		return this.#result.then(onFulfilled, onRejected);
	}

	/** As `Promise.prototype.catch`. */
	catch<Other = never>(
		onRejected?: ((reason: unknown) => Other | PromiseLike<Other>) | null,
	): Promise<GenerationResult | Other> {
		return this.#result.catch(onRejected);
	}

	/** As `Promise.prototype.finally`. */
	finally(onFinally?: (() => void) | null): Promise<GenerationResult> {
		return this.#result.finally(onFinally);
	}

	#notify(): void {
		const waiting = this.#wake;
		this.#wake = [];
		for (const wake of waiting) wake();
	}
}
