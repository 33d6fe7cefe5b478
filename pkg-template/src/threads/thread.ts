// What a thread does, in a browser's worker or in Node's: it enters the engine's memory and works there
// until its model is disposed of.

import * as api from "sterna-wasm-threads";

/** What a thread needs to know. */
export interface ThreadStart {
	module: WebAssembly.Module;
	memory: WebAssembly.Memory;
	/** Its place among the model's threads. */
	seat: number;
}

/** What a thread tells: that it works, why it does not, or that it has left its model. */
export type ThreadReport = { type: "ready" } | { type: "failed"; message: string } | { type: "left" };

/** Kernels need little; a multiple of the page size. */
const STACK_BYTES = 4 * 65536;

/** Reports that the thread works, and works until the model is disposed of. */
export function runThread({ module, memory, seat }: ThreadStart, report: (report: ThreadReport) => void) {
	let leave: () => void;
	try {
		const wasm = api.initSync({ module, memory, thread_stack_size: STACK_BYTES });
		leave = () => wasm.__wbindgen_thread_destroy();
	} catch (error) {
		report({ type: "failed", message: String(error) });
		return;
	}
	report({ type: "ready" });
	try {
		api.serveThread(seat);
	} catch (error) {
		// The engine waits for what this thread had begun.
		api.abandonThread(seat);
		throw error;
	}
	leave();
	report({ type: "left" });
}
