// Where stored files lie. A backend keeps volumes; a volume is the blocks of one file and the journal that says
// which of them can be trusted. Backends know nothing of what the journal's bytes mean.

/** The kinds of storage. */
export type BackendKind = "opfs" | "cache-api" | "memory";

/** One file's blocks and its journal. A volume is open for one writer, or for readers. */
export interface Volume {
	/** The whole journal. */
	readJournal(): Promise<Uint8Array>;
	/** Cuts the journal to its first bytes. */
	truncateJournal(length: number): Promise<void>;
	/** Appends to the journal; resolves when that will outlive a crash. */
	appendJournal(bytes: Uint8Array): Promise<void>;
	/** Writes a block; `offset` is its place in the file. */
	writeBlock(offset: number, bytes: Uint8Array): Promise<void>;
	/** Resolves when all blocks that were written will outlive a crash. */
	flush(): Promise<void>;
	/** A block's bytes; fewer than `length` where fewer are there. They are valid until the next call. */
	readBlock(offset: number, length: number): Promise<Uint8Array>;
	close(): Promise<void>;
}

/** A place that keeps volumes over visits. Names are made of `a-z`, `0-9` and `.`. */
export interface StorageBackend {
	readonly kind: BackendKind;
	/** The names of all volumes. */
	list(): Promise<string[]>;
	/** Opens a volume for reading; `undefined` when there is none. */
	read(name: string): Promise<Volume | undefined>;
	/** Opens a volume for writing too, and creates it when there is none. */
	write(name: string): Promise<Volume>;
	/** Removes a volume. */
	remove(name: string): Promise<void>;
	/** The blocks of a file of `size` bytes as a blob that lies where they lie. */
	blob(name: string, size: number): Promise<Blob>;
}
