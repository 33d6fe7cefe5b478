// Gives the event loop a turn between two steps of a long computation, so that messages and aborts get
// through. Timers would do too, but browsers delay nested ones by 4 ms, several times the length of a step.

type Continue = () => void;

function messageChannelYield(): (resume: Continue) => void {
	const { port1, port2 } = new MessageChannel();
	const waiting: Continue[] = [];
	port1.onmessage = () => waiting.shift()?.();
	return (resume) => {
		waiting.push(resume);
		port2.postMessage(null);
	};
}

// In Node an open message port would keep the process alive; `setImmediate` does not.
const schedule: (resume: Continue) => void =
	typeof setImmediate === "function" ? (resume) => setImmediate(resume) : messageChannelYield();

/** Resolves after other waiting events have had their turn. */
export function yieldToEventLoop(): Promise<void> {
	return new Promise(schedule);
}

/** How long a thread may be busy before the event loop gets a turn, in milliseconds: half a frame. */
const TURN_INTERVAL = 8;

/** Gives the event loop its turns in work whose steps are shorter than one is worth. */
export class Turns {
	#last = performance.now();

	/** Resolves at once, or after a turn where the last one was long ago. */
	async take(): Promise<void> {
		if (performance.now() - this.#last < TURN_INTERVAL) return;
		await yieldToEventLoop();
		this.#last = performance.now();
	}
}
