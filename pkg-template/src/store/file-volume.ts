// A volume of two files, one for the blocks and one for the journal, that are read and written in place.

import type { Volume } from "./backend.js";

/** The part of `FileSystemSyncAccessHandle` that is used. */
export interface SyncFile {
	read(buffer: Uint8Array, options: { at: number }): number;
	write(buffer: Uint8Array, options: { at: number }): number;
	truncate(size: number): void;
	getSize(): number;
	flush(): void;
	close(): void;
}

/**
 * Writes all bytes. One call may write fewer, and where the quota is used up, Chromium returns a negative error
 * number as an unsigned one in place of throwing.
 */
function writeAll(file: SyncFile, bytes: Uint8Array, at: number): void {
	for (let done = 0; done < bytes.length; ) {
		const left = bytes.subarray(done);
		const count = file.write(left, { at: at + done });
		if (count <= 0 || count > left.length) {
			throw new DOMException("The storage took no more bytes.", "QuotaExceededError");
		}
		done += count;
	}
}

/** Reads as many bytes as there are, up to the buffer's length. */
function readUpTo(file: SyncFile, buffer: Uint8Array, at: number): Uint8Array {
	let done = 0;
	while (done < buffer.length) {
		const count = file.read(buffer.subarray(done), { at: at + done });
		if (count <= 0) break;
		done += count;
	}
	return buffer.subarray(0, done);
}

/** A volume in two files. */
export class FileVolume implements Volume {
	readonly #blocks: SyncFile;
	readonly #journal: SyncFile;
	#buffer = new Uint8Array();

	constructor(blocks: SyncFile, journal: SyncFile) {
		this.#blocks = blocks;
		this.#journal = journal;
	}

	async readJournal(): Promise<Uint8Array> {
		return readUpTo(this.#journal, new Uint8Array(this.#journal.getSize()), 0);
	}

	async truncateJournal(length: number): Promise<void> {
		this.#journal.truncate(length);
		this.#journal.flush();
	}

	async appendJournal(bytes: Uint8Array): Promise<void> {
		writeAll(this.#journal, bytes, this.#journal.getSize());
		this.#journal.flush();
	}

	async writeBlock(offset: number, bytes: Uint8Array): Promise<void> {
		writeAll(this.#blocks, bytes, offset);
	}

	async flush(): Promise<void> {
		this.#blocks.flush();
	}

	async readBlock(offset: number, length: number): Promise<Uint8Array> {
		if (this.#buffer.length < length) this.#buffer = new Uint8Array(length);
		return readUpTo(this.#blocks, this.#buffer.subarray(0, length), offset);
	}

	async close(): Promise<void> {
		this.#blocks.close();
		this.#journal.close();
	}
}
