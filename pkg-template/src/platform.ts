// What the package takes from its surroundings: a page, a worker or Node.

import type { OpenContext } from "./files/open.js";
import type { Instance } from "./instances.js";
import type { StartThread } from "./threads/team.js";

/** What the engine takes from its surroundings. */
export interface Platform extends OpenContext {
	/** Instantiates the wasm module, once for each build, and grants threads. */
	instantiate(
		wasmUrl: string | undefined,
		threads: "auto" | number,
	): Promise<{ instance: Instance; threads: number }>;
	startThread: StartThread;
}
