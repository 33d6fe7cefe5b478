// Opens the place where models are kept, in a page or in a worker.

import type { BackendKind, StorageBackend } from "./backend.js";
import { openCacheApi } from "./cache-api.js";
import { loadChecksum } from "./checksum.js";
import { siteLocks } from "./locks.js";
import { MemoryBackend } from "./memory.js";
import { hasSyncHandles, openOpfs } from "./opfs.js";
import { Store } from "./store.js";

/** One for each page or worker: another one would know nothing of it. */
const memory = new MemoryBackend();

async function backend(kind: "auto" | BackendKind): Promise<StorageBackend | undefined> {
	switch (kind) {
		case "memory":
			return memory;
		case "cache-api":
			return openCacheApi();
		case "opfs":
			return hasSyncHandles() ? openOpfs() : undefined;
		case "auto":
			return (await backend("opfs")) ?? backend("cache-api");
	}
}

/** A store to load models from and to keep them in; `undefined` where the browser has none of that kind. */
export async function openStore(kind: "auto" | BackendKind): Promise<Store | undefined> {
	const opened = await backend(kind);
	return opened && new Store(opened, await loadChecksum(), siteLocks);
}

/** All stores that may hold models, for looking into them and deleting. */
export async function allStores(): Promise<Store[]> {
	if (typeof navigator !== "object" || !navigator.storage) return [];
	const backends = [await openOpfs(), await openCacheApi(), memory];
	const checksum = await loadChecksum();
	return backends.flatMap((opened) => (opened ? [new Store(opened, checksum, siteLocks)] : []));
}
