// The read bandwidth that the browser's engine reaches, with as many threads as the model gets.
import { readFileSync } from "node:fs";
import binaryen from "binaryen";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { openTab } from "./tab.mjs";

/** More than any cache keeps. */
const BYTES = 320e6;

/** Starts the reader; `read()` measures once, `{ ms, bytes, cpuMs }`. */
export async function startReader(server, threads) {
	const module = binaryen.parseText(readFileSync(inRoot("benches", "pages", "read.wat"), "utf8"));
	module.setFeatures(binaryen.Features.SIMD128);
	const url = server.addWasm("read.wasm", module.emitBinary());
	const tab = await openTab(server, "read");
	await tab.call("load", { url, threads, bytes: BYTES });
	return {
		browserVersion: tab.browserVersion,
		read: () => tab.callTimed("read", { passes: 2 }),
		close: () => tab.close(),
	};
}
