// Ctrl-C: the first one stops the work in order, a second one ends the process at once.

/** A signal that aborts at the first interrupt. */
export function interruptSignal(): AbortSignal {
	const controller = new AbortController();
	process.once("SIGINT", () => {
		controller.abort("Interrupted.");
		process.once("SIGINT", () => process.exit(130));
	});
	return controller.signal;
}
