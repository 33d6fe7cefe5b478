// The memory that threads share.

import { OutOfMemoryError } from "../errors.js";

/** Pages of 64 KiB: enough for the module's own data; it grows as models are loaded. */
const INITIAL_PAGES = 64;
/** What 32-bit addresses reach, and what systems with little address space may still grant. */
const MAXIMUM_PAGES = [65_536, 32_768, 16_384];

/** A shared memory that may grow as far as the system allows. */
export function sharedMemory(): WebAssembly.Memory {
	let cause: unknown;
	for (const maximum of MAXIMUM_PAGES) {
		try {
			return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared: true });
		} catch (error) {
			cause = error;
		}
	}
	const least = MAXIMUM_PAGES.at(-1)! / 2 ** 14;
	throw new OutOfMemoryError(
		`Not even ${least} GiB of addresses can be had for memory that threads share. Set 'threads: 1'.`,
		{ cause },
	);
}
