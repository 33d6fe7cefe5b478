// Callers' functions that watch a call: what they throw is theirs, and does not end the call.

/** Reports an error as one that nobody caught, where the surroundings can. */
function report(error: unknown): void {
	if (typeof globalThis.reportError === "function") globalThis.reportError(error);
	else console.error(error);
}

/** A function that only watches: its errors are reported and go no further. */
export function watcher<Event>(
	callback: ((event: Event) => void) | undefined,
): ((event: Event) => void) | undefined {
	if (!callback) return undefined;
	return (event) => {
		try {
			callback(event);
		} catch (error) {
			report(error);
		}
	};
}
