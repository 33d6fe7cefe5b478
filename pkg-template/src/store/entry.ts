// One stored file: its journal and its blocks. A block counts as stored once its bytes and then its record are
// durable; every read is checked against the record.

import type { Volume } from "./backend.js";
import type { Checksum } from "./checksum.js";
import { type BlockRecord, type HeadRecord, Journal, type JournalRecord } from "./journal.js";

/** Bytes of a block; the last one of a file has fewer. */
export const BLOCK = 1 << 20;

/** How much may be written before it is made durable: what a crash costs at most. */
const COMMIT_BYTES = 16 * BLOCK;
const COMMIT_INTERVAL = 300;

/** What a journal says. */
export interface EntryState {
	head: HeadRecord;
	blocks: Map<number, BlockRecord>;
	/** Bytes of the file, once all of them are stored. */
	completeSize?: number;
}

/** What the records of a journal amount to; `undefined` without a whole head. */
export function replay(records: JournalRecord[]): EntryState | undefined {
	const [head, ...others] = records;
	if (head?.kind !== "file" && head?.kind !== "absent") return undefined;
	const state: EntryState = { head, blocks: new Map() };
	for (const record of others) {
		if (record.kind === "block") state.blocks.set(record.index, record);
		if (record.kind === "end") state.completeSize = record.size;
	}
	return state;
}

/** A stored file that is open. */
export class Entry {
	readonly name: string;
	readonly #volume: Volume;
	readonly #journal: Journal;
	readonly #checksum: Checksum;
	readonly #state: EntryState;
	#pending: BlockRecord[] = [];
	#pendingBytes = 0;
	#lastCommit = performance.now();
	/** Writes and commits one after another, whoever asks for them. */
	#queue: Promise<unknown> = Promise.resolve();
	/** Why the journal cannot be continued: what a failed append left at its end is not known. */
	#broken: unknown;

	private constructor(name: string, volume: Volume, journal: Journal, checksum: Checksum, state: EntryState) {
		this.name = name;
		this.#volume = volume;
		this.#journal = journal;
		this.#checksum = checksum;
		this.#state = state;
	}

	/**
	 * Opens what a volume holds; `undefined` when its journal has no whole head. For writing, what a crash left
	 * behind the last whole record is cut off.
	 */
	static async open(
		name: string,
		volume: Volume,
		checksum: Checksum,
		mode: "read" | "write",
	): Promise<Entry | undefined> {
		const journal = new Journal(checksum);
		const bytes = await volume.readJournal();
		const { records, length } = journal.decode(bytes);
		const state = replay(records);
		if (!state) return undefined;
		if (mode === "write" && length < bytes.length) await volume.truncateJournal(length);
		return new Entry(name, volume, journal, checksum, state);
	}

	/** Starts a file anew in a volume. */
	static async create(name: string, volume: Volume, checksum: Checksum, head: HeadRecord): Promise<Entry> {
		const journal = new Journal(checksum);
		await volume.truncateJournal(0);
		await volume.appendJournal(journal.encode([head]));
		return new Entry(name, volume, journal, checksum, { head, blocks: new Map() });
	}

	get head(): HeadRecord {
		return this.#state.head;
	}

	/** Bytes of the file, once all of them are stored. */
	get completeSize(): number | undefined {
		return this.#state.completeSize;
	}

	/** Bytes that are stored. */
	get storedBytes(): number {
		let sum = 0;
		for (const { length } of this.#state.blocks.values()) sum += length;
		return sum;
	}

	/** The blocks that are stored, and how many bytes each has. */
	blocks(): { index: number; length: number }[] {
		return [...this.#state.blocks.values()];
	}

	has(index: number): boolean {
		return this.#state.blocks.has(index);
	}

	/** The first stored block from `index` on. */
	nextStored(index: number): number | undefined {
		let next: number | undefined;
		for (const stored of this.#state.blocks.keys()) {
			if (stored >= index && (next === undefined || stored < next)) next = stored;
		}
		return next;
	}

	/** Stores a block. It can be read at once; it outlives a crash after the next {@link commit}. */
	write(index: number, bytes: Uint8Array): Promise<void> {
		return this.#enqueue(async () => {
			const sum = this.#checksum(bytes);
			await this.#volume.writeBlock(index * BLOCK, bytes);
			const record: BlockRecord = { kind: "block", index, length: bytes.length, sum };
			this.#state.blocks.set(index, record);
			this.#pending.push(record);
			this.#pendingBytes += bytes.length;
			const isTime = performance.now() - this.#lastCommit >= COMMIT_INTERVAL;
			if (isTime || this.#pendingBytes >= COMMIT_BYTES) await this.#commit();
		});
	}

	/** Makes durable what was written. */
	commit(): Promise<void> {
		return this.#enqueue(() => this.#commit());
	}

	/** Says that all blocks of the file are stored. */
	finish(size: number): Promise<void> {
		return this.#enqueue(async () => {
			await this.#commit();
			await this.#append([{ kind: "end", size }]);
			this.#state.completeSize = size;
		});
	}

	/** A block's bytes, valid until the next call; `undefined` when it is damaged, and then it counts as missing. */
	async read(index: number): Promise<Uint8Array | undefined> {
		const record = this.#state.blocks.get(index);
		if (!record) return undefined;
		const bytes = await this.#volume.readBlock(index * BLOCK, record.length).catch(() => undefined);
		if (bytes?.length === record.length && this.#checksum(bytes) === record.sum) return bytes;
		this.#state.blocks.delete(index);
		return undefined;
	}

	/** Makes durable what can be, and lets go of the volume. */
	async close(): Promise<void> {
		await this.commit().catch(() => undefined);
		await this.#volume.close();
	}

	async #commit(): Promise<void> {
		const records = this.#pending;
		this.#lastCommit = performance.now();
		if (records.length === 0) return;
		await this.#volume.flush();
		await this.#append(records);
		this.#pending = [];
		this.#pendingBytes = 0;
	}

	async #append(records: JournalRecord[]): Promise<void> {
		if (this.#broken) throw this.#broken;
		try {
			await this.#volume.appendJournal(this.#journal.encode(records));
		} catch (error) {
			this.#broken = error;
			throw error;
		}
	}

	#enqueue(work: () => Promise<void>): Promise<void> {
		const done = this.#queue.then(work);
		this.#queue = done.catch(() => undefined);
		return done;
	}
}
