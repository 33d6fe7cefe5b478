// Waiting that an abort ends.

import { abortedBy, throwIfAborted } from "../errors.js";

/** Resolves after so many milliseconds. */
export function delay(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
	throwIfAborted(signal);
	return new Promise((resolve, reject) => {
		const onAbort = () => {
			clearTimeout(timer);
			reject(abortedBy(signal!));
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener("abort", onAbort);
			resolve();
		}, milliseconds);
		signal?.addEventListener("abort", onAbort, { once: true });
	});
}
