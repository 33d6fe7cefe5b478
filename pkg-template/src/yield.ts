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
