// The script of a thread in a browser: a module worker of the engine's worker.

import { runThread, type ThreadStart } from "./threads/thread.js";

globalThis.onmessage = ({ data }: MessageEvent<ThreadStart>) => {
	runThread(data, (report) => globalThis.postMessage(report));
};
