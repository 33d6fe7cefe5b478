// Who may touch a stored file: one writer, or several readers, over all tabs and workers of the site.

import { abortedBy, throwIfAborted } from "../errors.js";

/** Gives a lock back; resolves when others can have it. */
export type Release = () => Promise<void>;

/** Locks by name. */
export interface Locks {
	/** Waits for a lock. */
	acquire(name: string, mode: LockMode, signal: AbortSignal | undefined): Promise<Release>;
	/** Takes a lock that is free; `undefined` when it is not. */
	tryAcquire(name: string, mode: LockMode): Promise<Release | undefined>;
}

/** Holds a lock until the function that it gives is called. */
function hold(name: string, options: LockOptions): Promise<Release | undefined> {
	return new Promise((resolve, reject) => {
		const held: Promise<unknown> = navigator.locks.request(name, options, (lock) => {
			if (!lock) {
				resolve(undefined);
				return undefined;
			}
			return new Promise<void>((end) =>
				resolve(async () => {
					end();
					await held;
				}),
			);
		});
		held.catch(reject);
	});
}

/** The browser's locks; they end with the tab that holds them, however it ends. */
export const webLocks: Locks = {
	async acquire(name, mode, signal) {
		throwIfAborted(signal);
		try {
			return (await hold(name, { mode, signal }))!;
		} catch (error) {
			if (signal?.aborted) throw abortedBy(signal);
			throw error;
		}
	},
	tryAcquire: (name, mode) => hold(name, { mode, ifAvailable: true }),
};

/** Locks among the users of one thread, for where the browser has none. */
export class LocalLocks implements Locks {
	readonly #held = new Map<string, { mode: LockMode; count: number }>();
	#waiting: (() => void)[] = [];

	async acquire(name: string, mode: LockMode, signal: AbortSignal | undefined): Promise<Release> {
		for (;;) {
			throwIfAborted(signal);
			const release = await this.tryAcquire(name, mode);
			if (release) return release;
			await new Promise<void>((resolve) => {
				this.#waiting.push(resolve);
				signal?.addEventListener("abort", () => resolve(), { once: true });
			});
		}
	}

	async tryAcquire(name: string, mode: LockMode): Promise<Release | undefined> {
		const held = this.#held.get(name);
		if (held && (mode === "exclusive" || held.mode === "exclusive")) return undefined;
		const lock = held ?? { mode, count: 0 };
		lock.count += 1;
		this.#held.set(name, lock);
		return async () => this.#release(name, lock);
	}

	#release(name: string, lock: { count: number }): void {
		lock.count -= 1;
		if (lock.count === 0) this.#held.delete(name);
		const waiting = this.#waiting;
		this.#waiting = [];
		for (const wake of waiting) wake();
	}
}

/** The locks of these surroundings. */
export const siteLocks: Locks =
	typeof navigator === "object" && navigator.locks ? webLocks : new LocalLocks();
