// Volumes in memory: for as long as this page, worker or process lives.

import { QuotaExceededError } from "../errors.js";
import type { StorageBackend, Volume } from "./backend.js";

/** What is kept of one file. */
interface Kept {
	journal: Uint8Array;
	blocks: Map<number, Uint8Array>;
}

/** No more than this is kept: the model itself needs its memory more. */
const MAX_BYTES = 512 << 20;

class MemoryVolume implements Volume {
	readonly #kept: Kept;
	readonly #reserve: (bytes: number) => void;

	constructor(kept: Kept, reserve: (bytes: number) => void) {
		this.#kept = kept;
		this.#reserve = reserve;
	}

	async readJournal(): Promise<Uint8Array> {
		return this.#kept.journal;
	}

	async truncateJournal(length: number): Promise<void> {
		this.#kept.journal = this.#kept.journal.slice(0, length);
	}

	async appendJournal(bytes: Uint8Array): Promise<void> {
		const joined = new Uint8Array(this.#kept.journal.length + bytes.length);
		joined.set(this.#kept.journal);
		joined.set(bytes, this.#kept.journal.length);
		this.#kept.journal = joined;
	}

	async writeBlock(offset: number, bytes: Uint8Array): Promise<void> {
		this.#reserve(bytes.length - (this.#kept.blocks.get(offset)?.length ?? 0));
		this.#kept.blocks.set(offset, bytes.slice());
	}

	async flush(): Promise<void> {}

	async readBlock(offset: number): Promise<Uint8Array> {
		return this.#kept.blocks.get(offset) ?? new Uint8Array();
	}

	async close(): Promise<void> {}
}

/** A backend that forgets everything with the page. */
export class MemoryBackend implements StorageBackend {
	readonly kind = "memory";
	readonly #limit: number;
	readonly #kept = new Map<string, Kept>();

	constructor(limit = MAX_BYTES) {
		this.#limit = limit;
	}

	async list(): Promise<string[]> {
		return [...this.#kept.keys()];
	}

	async read(name: string): Promise<Volume | undefined> {
		const kept = this.#kept.get(name);
		return kept && this.#open(kept);
	}

	async write(name: string): Promise<Volume> {
		const kept = this.#kept.get(name) ?? { journal: new Uint8Array(), blocks: new Map() };
		this.#kept.set(name, kept);
		return this.#open(kept);
	}

	async remove(name: string): Promise<void> {
		this.#kept.delete(name);
	}

	async blob(name: string, size: number): Promise<Blob> {
		const blocks = [...(this.#kept.get(name)?.blocks ?? [])].sort(([a], [b]) => a - b);
		return new Blob(blocks.map(([, bytes]) => bytes as Uint8Array<ArrayBuffer>)).slice(0, size);
	}

	#open(kept: Kept): Volume {
		return new MemoryVolume(kept, (bytes) => this.#reserve(bytes));
	}

	#reserve(bytes: number): void {
		let held = 0;
		for (const { blocks } of this.#kept.values()) for (const block of blocks.values()) held += block.length;
		if (held + bytes > this.#limit) {
			throw new QuotaExceededError(`No more than ${this.#limit >> 20} MiB of models are kept in memory.`);
		}
	}
}
