// A disk that crashes. It keeps what was written apart from what was flushed; at the step that a test names, the
// machine goes down, and any part of what was not flushed may or may not be there afterwards.

import type { StorageBackend, Volume } from "../../pkg-template/src/store/backend.js";
import { FileVolume, type SyncFile } from "../../pkg-template/src/store/file-volume.js";

/** The machine went down. */
export class Crash extends Error {}

/** A number generator that gives the same numbers for the same seed (mulberry32). */
function numbers(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}

/** What happened to a file since it was last flushed. */
type Change = { at: number; bytes: Uint8Array } | { size: number };

interface DiskFile {
	/** What a crash leaves in any case. */
	durable: Uint8Array;
	/** What a reader sees. */
	current: Uint8Array;
	changes: Change[];
}

function apply(bytes: Uint8Array, change: Change): Uint8Array {
	const size = "size" in change ? change.size : Math.max(bytes.length, change.at + change.bytes.length);
	const changed = new Uint8Array(size);
	changed.set(bytes.subarray(0, size));
	if ("bytes" in change) changed.set(change.bytes, change.at);
	return changed;
}

/** Files that outlive crashes, as far as they were flushed. */
export class FakeDisk {
	readonly #files = new Map<string, DiskFile>();
	/** How many steps are left until the crash. */
	stepsLeft = Number.POSITIVE_INFINITY;
	/** Steps so far. */
	steps = 0;
	/** Thrown in place of a crash at the step, which the program survives: a full disk. */
	failure: (() => Error) | undefined;

	/** A disk with the same files, in the same state. */
	clone(): FakeDisk {
		const copy = new FakeDisk();
		for (const [name, { durable, current, changes }] of this.#files) {
			copy.#files.set(name, { durable: durable.slice(), current: current.slice(), changes: [...changes] });
		}
		return copy;
	}

	names(): string[] {
		return [...this.#files.keys()];
	}

	/** What a file holds now. */
	content(name: string): Uint8Array {
		return this.#files.get(name)?.current ?? new Uint8Array();
	}

	/** Flips a bit. */
	damage(name: string, at: number): void {
		const { current, durable } = this.#files.get(name)!;
		current[at]! ^= 1;
		if (durable !== current) durable[at]! ^= 1;
	}

	remove(name: string): void {
		this.#step();
		this.#files.delete(name);
	}

	open(name: string): SyncFile {
		let file = this.#files.get(name);
		if (!file) {
			this.#step();
			file = { durable: new Uint8Array(), current: new Uint8Array(), changes: [] };
			this.#files.set(name, file);
		}
		const opened = file;
		const change = (what: Change) => {
			opened.changes.push(what);
			opened.current = apply(opened.current, what);
		};
		return {
			read(buffer, { at }) {
				const bytes = opened.current.subarray(at, at + buffer.length);
				buffer.set(bytes);
				return bytes.length;
			},
			write: (buffer, { at }) => {
				// A crash in the middle of a write leaves its beginning.
				try {
					this.#step();
				} catch (error) {
					if (error instanceof Crash) change({ at, bytes: buffer.slice(0, buffer.length >> 1) });
					throw error;
				}
				change({ at, bytes: buffer.slice() });
				return buffer.length;
			},
			truncate: (size) => {
				this.#step();
				change({ size });
			},
			getSize: () => opened.current.length,
			flush: () => {
				this.#step();
				opened.durable = opened.current;
				opened.changes = [];
			},
			close() {},
		};
	}

	/** Starts the machine again. Changes that were not flushed are there or not, each by itself. */
	restart(seed: number): void {
		const random = numbers(seed);
		for (const file of this.#files.values()) {
			file.current = file.changes.reduce(
				(bytes, change) => (random() < 0.5 ? apply(bytes, change) : bytes),
				file.durable,
			);
			file.durable = file.current;
			file.changes = [];
		}
		this.stepsLeft = Number.POSITIVE_INFINITY;
	}

	#step(): void {
		this.steps += 1;
		this.stepsLeft -= 1;
		if (this.stepsLeft < 0 && this.failure) throw this.failure();
		if (this.stepsLeft < 0) throw new Crash("The machine went down.");
	}
}

/** Volumes on a fake disk. */
export class FakeBackend implements StorageBackend {
	readonly kind = "opfs";

	constructor(readonly disk: FakeDisk) {}

	async list(): Promise<string[]> {
		return this.disk
			.names()
			.filter((name) => name.endsWith(".journal"))
			.map((name) => name.slice(0, -".journal".length));
	}

	async read(name: string): Promise<Volume | undefined> {
		return this.disk.names().includes(`${name}.journal`) ? this.write(name) : undefined;
	}

	async write(name: string): Promise<Volume> {
		return new FileVolume(this.disk.open(`${name}.blocks`), this.disk.open(`${name}.journal`));
	}

	async remove(name: string): Promise<void> {
		this.disk.remove(`${name}.journal`);
		this.disk.remove(`${name}.blocks`);
	}

	async blob(name: string, size: number): Promise<Blob> {
		return new Blob([this.disk.content(`${name}.blocks`).slice(0, size)]);
	}
}
