// Volumes in the Cache API, for where files cannot be written in place: each block, and each append to a journal,
// is a response of its own, which browsers store whole or not at all.

import type { StorageBackend, Volume } from "./backend.js";

const CACHE = "sterna-models";

/** Addresses that no server has; they only name what is stored. */
const ORIGIN = "https://sterna.invalid/";

const blockUrl = (name: string, offset: number) => `${ORIGIN}${name}/block/${offset}`;
const journalUrl = (name: string, part: number) => `${ORIGIN}${name}/journal/${part}`;

class CacheVolume implements Volume {
	readonly #cache: Cache;
	readonly #name: string;
	#parts: number;

	constructor(cache: Cache, name: string, parts: number) {
		this.#cache = cache;
		this.#name = name;
		this.#parts = parts;
	}

	async readJournal(): Promise<Uint8Array> {
		const parts: Blob[] = [];
		for (let part = 0; part < this.#parts; part += 1) {
			const found = await this.#cache.match(journalUrl(this.#name, part));
			if (!found) break;
			parts.push(await found.blob());
		}
		return new Uint8Array(await new Blob(parts).arrayBuffer());
	}

	async truncateJournal(length: number): Promise<void> {
		const kept = (await this.readJournal()).slice(0, length);
		// What a crash leaves of the later parts does not continue the first one, and is not read.
		await this.#put(journalUrl(this.#name, 0), kept);
		for (let part = 1; part < this.#parts; part += 1) await this.#cache.delete(journalUrl(this.#name, part));
		this.#parts = 1;
	}

	async appendJournal(bytes: Uint8Array): Promise<void> {
		await this.#put(journalUrl(this.#name, this.#parts), bytes);
		this.#parts += 1;
	}

	writeBlock(offset: number, bytes: Uint8Array): Promise<void> {
		return this.#put(blockUrl(this.#name, offset), bytes);
	}

	async flush(): Promise<void> {}

	async readBlock(offset: number): Promise<Uint8Array> {
		const found = await this.#cache.match(blockUrl(this.#name, offset));
		return found ? new Uint8Array(await found.arrayBuffer()) : new Uint8Array();
	}

	async close(): Promise<void> {}

	async #put(url: string, bytes: Uint8Array): Promise<void> {
		await this.#cache.put(url, new Response(bytes.slice()));
	}
}

class CacheApiBackend implements StorageBackend {
	readonly kind = "cache-api";
	readonly #cache: Cache;

	constructor(cache: Cache) {
		this.#cache = cache;
	}

	async list(): Promise<string[]> {
		const names = await this.#paths();
		return [...new Set(names.map((path) => path.split("/")[0]!))];
	}

	async read(name: string): Promise<Volume | undefined> {
		const parts = await this.#parts(name);
		return parts > 0 ? new CacheVolume(this.#cache, name, parts) : undefined;
	}

	async write(name: string): Promise<Volume> {
		return new CacheVolume(this.#cache, name, await this.#parts(name));
	}

	async remove(name: string): Promise<void> {
		const paths = (await this.#paths()).filter((path) => path.startsWith(`${name}/`));
		// The journal first: without it the blocks mean nothing.
		for (const path of paths.sort().reverse()) await this.#cache.delete(ORIGIN + path);
	}

	async blob(name: string, size: number): Promise<Blob> {
		const offsets = (await this.#paths())
			.filter((path) => path.startsWith(`${name}/block/`))
			.map((path) => Number(path.split("/")[2]))
			.sort((a, b) => a - b);
		const blocks: Blob[] = [];
		for (const offset of offsets) {
			const found = await this.#cache.match(blockUrl(name, offset));
			if (found) blocks.push(await found.blob());
		}
		return new Blob(blocks).slice(0, size);
	}

	async #paths(): Promise<string[]> {
		const requests = await this.#cache.keys();
		return requests.map(({ url }) => url.slice(ORIGIN.length));
	}

	/** How many parts a journal has. */
	async #parts(name: string): Promise<number> {
		let parts = 0;
		while (await this.#cache.match(journalUrl(name, parts))) parts += 1;
		return parts;
	}
}

/** The backend; `undefined` where the browser does not let the page have it. */
export async function openCacheApi(): Promise<StorageBackend | undefined> {
	try {
		return new CacheApiBackend(await caches.open(CACHE));
	} catch {
		return undefined;
	}
}
