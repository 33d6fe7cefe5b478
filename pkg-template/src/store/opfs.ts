// Volumes in the origin private file system. Workers have handles that write in place and synchronously; pages
// can only look and delete.

import type { StorageBackend, Volume } from "./backend.js";
import { FileVolume, type SyncFile } from "./file-volume.js";

/** The folder; other code of the same site may keep its own files beside it. */
const FOLDER = "sterna-models";

const BLOCKS = ".blocks";
const JOURNAL = ".journal";

// TypeScript's library does not know the modes, which let several tabs read one file at once.
type OpenSync = (options?: { mode: "readwrite" | "read-only" }) => Promise<SyncFile>;

async function openSync(handle: FileSystemFileHandle, mode: "readwrite" | "read-only"): Promise<SyncFile> {
	return (handle as unknown as { createSyncAccessHandle: OpenSync }).createSyncAccessHandle({ mode });
}

/** A volume that is only read, for where no handle can be had: in pages, and while another tab has it open. */
class BlobVolume implements Volume {
	readonly #blocks: Blob;
	readonly #journal: Blob;

	constructor(blocks: Blob, journal: Blob) {
		this.#blocks = blocks;
		this.#journal = journal;
	}

	async readJournal(): Promise<Uint8Array> {
		return new Uint8Array(await this.#journal.arrayBuffer());
	}

	async readBlock(offset: number, length: number): Promise<Uint8Array> {
		return new Uint8Array(await this.#blocks.slice(offset, offset + length).arrayBuffer());
	}

	truncateJournal = this.#refuse;
	appendJournal = this.#refuse;
	writeBlock = this.#refuse;
	flush = this.#refuse;

	async close(): Promise<void> {}

	async #refuse(): Promise<never> {
		throw new Error("The volume is open for reading only.");
	}
}

class OpfsBackend implements StorageBackend {
	readonly kind = "opfs";
	readonly #folder: FileSystemDirectoryHandle;

	constructor(folder: FileSystemDirectoryHandle) {
		this.#folder = folder;
	}

	async list(): Promise<string[]> {
		const names: string[] = [];
		for await (const name of this.#folder.keys()) {
			if (name.endsWith(JOURNAL)) names.push(name.slice(0, -JOURNAL.length));
		}
		return names;
	}

	async read(name: string): Promise<Volume | undefined> {
		const handles = await this.#handles(name, false);
		if (!handles) return undefined;
		return (await this.#open(handles, "read-only").catch(() => undefined)) ?? this.#blobs(handles);
	}

	async write(name: string): Promise<Volume> {
		return this.#open((await this.#handles(name, true))!, "readwrite");
	}

	async remove(name: string): Promise<void> {
		// The journal first: without it the blocks mean nothing.
		for (const file of [name + JOURNAL, name + BLOCKS]) {
			await this.#folder.removeEntry(file).catch((error) => {
				if ((error as DOMException).name !== "NotFoundError") throw error;
			});
		}
	}

	async blob(name: string): Promise<Blob> {
		return (await this.#folder.getFileHandle(name + BLOCKS)).getFile();
	}

	async #handles(name: string, create: boolean) {
		try {
			const journal = await this.#folder.getFileHandle(name + JOURNAL, { create });
			const blocks = await this.#folder.getFileHandle(name + BLOCKS, { create });
			return { blocks, journal };
		} catch (error) {
			if (!create && (error as DOMException).name === "NotFoundError") return undefined;
			throw error;
		}
	}

	async #open(
		{ blocks, journal }: { blocks: FileSystemFileHandle; journal: FileSystemFileHandle },
		mode: "readwrite" | "read-only",
	): Promise<Volume> {
		const file = await openSync(blocks, mode);
		try {
			return new FileVolume(file, await openSync(journal, mode));
		} catch (error) {
			file.close();
			throw error;
		}
	}

	async #blobs({
		blocks,
		journal,
	}: {
		blocks: FileSystemFileHandle;
		journal: FileSystemFileHandle;
	}): Promise<Volume> {
		return new BlobVolume(await blocks.getFile(), await journal.getFile());
	}
}

/** Whether this context can write in place. */
export function hasSyncHandles(): boolean {
	return (
		typeof FileSystemFileHandle === "function" && "createSyncAccessHandle" in FileSystemFileHandle.prototype
	);
}

/** The backend; `undefined` where the browser has no such file system, as in some private windows. */
export async function openOpfs(): Promise<StorageBackend | undefined> {
	try {
		const root = await navigator.storage.getDirectory();
		return new OpfsBackend(await root.getDirectoryHandle(FOLDER, { create: true }));
	} catch {
		return undefined;
	}
}
