// The stored files of a site. A file's slot is what it is known by: its digest, or else its address. A slot holds
// one volume for each version of the file, so that an old version stays until the new one is complete.

import type { StorageBackend } from "./backend.js";
import type { Checksum } from "./checksum.js";
import { Entry, type EntryState, replay } from "./entry.js";
import { type HeadRecord, Journal } from "./journal.js";
import type { Locks } from "./locks.js";

/** A volume and what its journal says. */
export interface Stored {
	/** The volume's name. */
	name: string;
	state: EntryState;
}

/** What a slot holds. */
export interface Survey {
	/** The latest version of which all is stored. */
	complete?: Stored;
	/** The version of which most is stored, but not all. */
	partial?: Stored;
	/** What says that the server does not have the file. */
	absent?: Stored;
}

const storedBytes = ({ state }: Stored) =>
	[...state.blocks.values()].reduce((sum, { length }) => sum + length, 0);

/** The slot that a volume is in. */
export const slotOf = (name: string) => name.slice(0, name.indexOf("."));

export class Store {
	readonly backend: StorageBackend;
	readonly checksum: Checksum;
	readonly locks: Locks;

	constructor(backend: StorageBackend, checksum: Checksum, locks: Locks) {
		this.backend = backend;
		this.checksum = checksum;
		this.locks = locks;
	}

	/** The slot of a file. */
	slot({ url, sha256 }: { url: string; sha256?: string }): string {
		return this.checksum(sha256 === undefined ? `url ${url}` : `sha256 ${sha256}`);
	}

	/** The name of a slot's lock. */
	lockName(slot: string): string {
		return `sterna ${this.backend.kind} ${slot}`;
	}

	/** What a volume's journal says; `undefined` without a whole head. */
	async look(name: string): Promise<EntryState | undefined> {
		const volume = await this.backend.read(name);
		if (!volume) return undefined;
		try {
			return replay(new Journal(this.checksum).decode(await volume.readJournal()).records);
		} finally {
			await volume.close();
		}
	}

	/** What a slot holds. The caller has its lock. */
	async survey(slot: string): Promise<Survey> {
		const found: Survey = {};
		for (const name of await this.#volumes(slot)) {
			const state = await this.look(name);
			if (!state) continue;
			const stored = { name, state };
			if (state.head.kind === "absent") found.absent = stored;
			else if (state.completeSize === undefined) {
				if (!found.partial || storedBytes(stored) > storedBytes(found.partial)) found.partial = stored;
			} else if (!found.complete || state.head.created > found.complete.state.head.created) {
				found.complete = stored;
			}
		}
		return found;
	}

	/** Opens what {@link survey} found. */
	async open({ name }: Stored, mode: "read" | "write"): Promise<Entry | undefined> {
		const volume = await (mode === "read" ? this.backend.read(name) : this.backend.write(name));
		const entry = volume && (await Entry.open(name, volume, this.checksum, mode));
		if (!entry) await volume?.close();
		return entry;
	}

	/** Starts a version of a file. The caller has its slot's exclusive lock. */
	async create(slot: string, head: HeadRecord): Promise<Entry> {
		const name = `${slot}.${this.checksum(JSON.stringify(head))}`;
		const volume = await this.backend.write(name);
		try {
			return await Entry.create(name, volume, this.checksum, head);
		} catch (error) {
			await volume.close();
			await this.backend.remove(name).catch(() => undefined);
			throw error;
		}
	}

	/**
	 * Removes a model's volumes that are in none of the slots: files of older versions of it. What is in use stays
	 * until the next time.
	 */
	async removeUnused(model: string, slots: ReadonlySet<string>): Promise<void> {
		for (const name of await this.backend.list()) {
			const slot = slotOf(name);
			if (slots.has(slot) || (await this.look(name))?.head.model !== model) continue;
			const release = await this.locks.tryAcquire(this.lockName(slot), "exclusive");
			if (!release) continue;
			try {
				await this.backend.remove(name);
			} finally {
				await release();
			}
		}
	}

	/** Removes a slot's volumes but one. The caller has its exclusive lock. */
	async removeOthers(slot: string, kept?: string): Promise<void> {
		for (const name of await this.#volumes(slot)) if (name !== kept) await this.backend.remove(name);
	}

	async #volumes(slot: string): Promise<string[]> {
		return (await this.backend.list()).filter((name) => name.startsWith(`${slot}.`));
	}
}
