// Measures loading from the browser's storage: a first load keeps the model, the others read it from there.

import { median } from "./summary.mjs";
import { openTab } from "./tab.mjs";

/**
 * Loads a model once from the server and `rounds` times from storage, in a browser with a profile on the disk: a
 * private one keeps files in another process's memory.
 *
 * @param engine one of ours
 * @returns medians: `ms`, `gbPerSecond`, `peakBytes` (most memory that the tab gained), and `wasmBytes`
 */
export async function measureStored(engine, server, { url, fileBytes, contextLength, rounds }) {
	const tab = await openTab(server, engine.page, { ...engine.flags, hasProfile: true });
	try {
		const { base, options } = engine.load(url, { contextLength });
		const load = () => tab.callWatched("loadStored", { base, url, options });
		await load();
		const loads = [];
		for (let round = 0; round < rounds; round++) loads.push(await load());
		const ms = median(loads.map((load) => load.ms));
		return {
			ms,
			gbPerSecond: fileBytes / ms / 1e6,
			peakBytes: median(loads.map(({ peakBytes }) => peakBytes)),
			wasmBytes: loads[0].memory.wasm,
			weightBytes: loads[0].memory.weights,
		};
	} finally {
		await tab.close();
	}
}
