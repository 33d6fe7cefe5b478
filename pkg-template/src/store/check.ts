// Reads stored files whole and tells how much of them is damaged.

import { throwIfAborted } from "../errors.js";
import { Turns } from "../yield.js";
import type { BackendKind } from "./backend.js";
import { Entry } from "./entry.js";
import { allStores } from "./open-store.js";
import { type Store, slotOf } from "./store.js";

/** A stored file as plain data. */
export interface StoredName {
	backend: BackendKind;
	/** The volume's name. */
	name: string;
}

/** Stopping and watching a check; `onEvent` is told how many more bytes were read. */
export interface CheckContext {
	signal?: AbortSignal;
	onEvent?: (bytes: number) => void;
}

/** Gives the damaged bytes of each file. */
export type CheckStored = (files: StoredName[], context: CheckContext) => Promise<number[]>;

/** Checks files in this thread. */
export const checkHere: CheckStored = async (files, context) => {
	const stores = new Map((await allStores()).map((store) => [store.backend.kind, store]));
	const turns = new Turns();
	const damaged: number[] = [];
	for (const { backend, name } of files) {
		const store = stores.get(backend);
		// What is gone by now is not damaged.
		damaged.push(store ? await damagedBytes(store, name, turns, context) : 0);
	}
	return damaged;
};

async function damagedBytes(
	store: Store,
	name: string,
	turns: Turns,
	{ signal, onEvent }: CheckContext,
): Promise<number> {
	const release = await store.locks.acquire(store.lockName(slotOf(name)), "shared", signal);
	const volume = await store.backend.read(name).catch(async (error) => {
		await release();
		throw error;
	});
	try {
		if (!volume) return 0;
		let damaged = 0;
		const entry = await Entry.open(name, volume, store.checksum, "read");
		if (!entry) return 0;
		for (const { index, length } of entry.blocks()) {
			throwIfAborted(signal);
			if (!(await entry.read(index))) damaged += length;
			onEvent?.(length);
			await turns.take();
		}
		return damaged;
	} finally {
		await volume?.close();
		await release();
	}
}
