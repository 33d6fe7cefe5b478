// A file on the network that is kept once it has been read: opened from the store where it is there, else
// downloaded into it, block by block, while it is read.

import { CorruptFileError, type QuotaExceededError, throwIfAborted } from "../errors.js";
import type { CheckpointFile, OpenedFile } from "../files/checkpoint.js";
import { AbsentError, ChangedError, isAbsent, TransientError } from "../net/http-errors.js";
import type { Network } from "../net/network.js";
import { Remote } from "../net/remote.js";
import { isSameVersion, requestHead } from "../net/request.js";
import { Transfer } from "../net/transfer.js";
import { Downloader, StorageFailure } from "./downloader.js";
import { BLOCK, type Entry } from "./entry.js";
import { absentRecord, type FileRecord, fileRecord } from "./journal.js";
import type { Release } from "./locks.js";
import { availableBytes, isQuotaError, noRoom } from "./quota.js";
import { followProgress, ProgressSender } from "./sharing.js";
import type { Store, Stored } from "./store.js";
import { startVerifier, type Verifier } from "./verifier.js";

/** A file to be opened. */
export interface FileRequest {
	/** The bare name. */
	name: string;
	/** The addresses, of which any will do. */
	urls: readonly string[];
	size?: number;
	/** SHA-256 in hexadecimal. */
	sha256?: string;
	/** The address always gives the same bytes. */
	isImmutable?: boolean;
	/** The stored copy is only for when the network has none: a listing, which changes. */
	isVolatile?: boolean;
}

/** How the store is used. */
export interface StoreOptions {
	/** What the files belong to. */
	model: string;
	/** Whether the server is asked if a stored file is still current. */
	revalidate: boolean;
	/** Whether a file that cannot be stored ends the load. */
	required: boolean;
}

/** A download that has begun. Without an entry nothing is stored; without a transfer nothing is missing. */
interface Begun {
	entry?: Entry;
	remote: Remote;
	transfer?: Transfer;
	/** The first block that is missing. */
	index: number;
	/** Ends the transfer. */
	controller: AbortController;
}

/** A controller that an outer signal aborts too. */
function linked(outer: AbortSignal | undefined): AbortController {
	const controller = new AbortController();
	if (outer?.aborted) controller.abort(outer.reason);
	const { signal } = controller;
	outer?.addEventListener("abort", () => controller.abort(outer.reason), { once: true, signal });
	return controller;
}

/** Whether a file whose download broke off can be continued: there must be something that tells its version. */
const isResumable = ({ etag, lastModified, sha256 }: FileRecord) =>
	etag !== undefined || lastModified !== undefined || sha256 !== undefined;

export class StoredFile implements CheckpointFile {
	readonly name: string;
	readonly size: number | undefined;
	readonly #request: FileRequest;
	readonly #store: Store;
	readonly #network: Network;
	readonly #options: StoreOptions;
	/** What the file is known by in the store. */
	readonly slot: string;
	/** The volume that the server has a newer version of. */
	#outdated: string | undefined;

	constructor(request: FileRequest, store: Store, network: Network, options: StoreOptions) {
		this.name = request.name;
		this.size = request.size;
		this.#request = request;
		this.#store = store;
		this.#network = network;
		this.#options = options;
		this.slot = store.slot({ url: request.urls[0]!, sha256: request.sha256 });
	}

	async open(signal: AbortSignal | undefined): Promise<OpenedFile> {
		if (!this.#request.isVolatile) {
			const shared = await this.#lock("shared", signal);
			try {
				const { complete } = await this.#store.survey(this.slot);
				if (complete && (await this.#isCurrent(complete, signal)))
					return await this.#read(complete, shared, signal);
			} catch (error) {
				await shared();
				throw error;
			}
			await shared();
		}
		const release = await this.#lock("exclusive", signal);
		try {
			return await this.#fetch(release, signal);
		} catch (error) {
			await release();
			throw error;
		}
	}

	/** How many bytes of the file are stored, and how many it has, without opening it. */
	async look(): Promise<{ stored: number; size?: number }> {
		const { complete, partial } = await this.#store.survey(this.slot);
		if (complete) return { stored: complete.state.completeSize!, size: complete.state.completeSize };
		if (partial?.state.head.kind !== "file") return { stored: 0 };
		const stored = [...partial.state.blocks.values()].reduce((sum, { length }) => sum + length, 0);
		return { stored, size: partial.state.head.size };
	}

	/** Forgets what is stored of the file. */
	async discard(): Promise<void> {
		const release = await this.#lock("exclusive", undefined);
		try {
			await this.#store.removeOthers(this.slot);
		} finally {
			await release();
		}
	}

	async #lock(mode: LockMode, signal: AbortSignal | undefined): Promise<Release> {
		const name = this.#store.lockName(this.slot);
		const free = await this.#store.locks.tryAcquire(name, mode);
		if (free) return free;
		const stop = followProgress(name, (progress) => this.#network.onWait(progress));
		this.#network.onWait(undefined);
		try {
			return await this.#store.locks.acquire(name, mode, signal);
		} finally {
			stop();
		}
	}

	/** Whether the server still has the version that is stored. A server that does not tell changes nothing. */
	async #isCurrent({ name, state: { head } }: Stored, signal: AbortSignal | undefined): Promise<boolean> {
		const { isImmutable, isVolatile, sha256, urls } = this.#request;
		if (isVolatile || name === this.#outdated) return false;
		if (isImmutable || sha256 !== undefined || !this.#options.revalidate || head.kind !== "file") return true;
		try {
			const { checkTimeout } = this.#network.patience;
			const now = await requestHead(urls[0]!, this.#network, signal, checkTimeout);
			const isCurrent = isSameVersion(head, now) !== false;
			if (!isCurrent) this.#outdated = name;
			return isCurrent;
		} catch {
			throwIfAborted(signal);
			return true;
		}
	}

	/** Reads a file that is stored whole. */
	async #read(stored: Stored, release: Release, signal: AbortSignal | undefined): Promise<OpenedFile> {
		const entry = await this.#store.open(stored, "read");
		if (!entry) throw new CorruptFileError(`The stored copy of ${this.name} is gone: load the model again.`);
		const size = entry.completeSize!;
		return {
			size,
			cachedBytes: size,
			pieces: this.#readPieces(entry, stored, size, release, signal),
		};
	}

	async *#readPieces(
		opened: Entry,
		stored: Stored,
		size: number,
		release: Release,
		signal: AbortSignal | undefined,
	): AsyncGenerator<Uint8Array> {
		let entry = opened;
		let unlock: Release | undefined = release;
		try {
			for (let index = 0; index * BLOCK < size; index += 1) {
				let bytes = await entry.read(index);
				if (!bytes) {
					// Others may read at the same time, so what is repaired needs the lock of a writer.
					await entry.close();
					await unlock?.();
					unlock = undefined;
					unlock = await this.#lock("exclusive", signal);
					entry = await this.#repair(stored, index, signal);
					bytes = await entry.read(index);
				}
				if (!bytes) throw new StorageFailure("A repaired block could not be read.");
				yield bytes;
			}
		} finally {
			await entry.close();
			await unlock?.();
		}
	}

	/** Fetches a damaged block again, alone. Gives the entry, open for writing. */
	async #repair(stored: Stored, index: number, signal: AbortSignal | undefined): Promise<Entry> {
		const entry = await this.#store.open(stored, "write");
		if (entry?.head.kind !== "file") {
			throw new CorruptFileError(`The stored copy of ${this.name} is gone: load the model again.`);
		}
		// Another tab may have repaired it meanwhile.
		if (await entry.read(index)) return entry;
		const downloader = new Downloader(entry, this.#remote(entry.head), signal, () => undefined);
		try {
			await downloader.fetch(index);
			await entry.commit();
			const message = `A damaged part of the stored copy of ${this.name} was downloaded again.`;
			this.#network.onNotice({ code: "repaired", message });
			return entry;
		} catch (error) {
			await entry.close();
			if (!(error instanceof ChangedError)) throw error;
			await this.#store.backend.remove(stored.name);
			throw new CorruptFileError(
				`The stored copy of ${this.name} is damaged, and the server has another version by now. Load the model again to download it.`,
				{ cause: error },
			);
		} finally {
			downloader.stop();
		}
	}

	#remote(known: Partial<FileRecord> = {}): Remote {
		const { urls, size, sha256 } = this.#request;
		const expected = {
			etag: known.etag,
			lastModified: known.lastModified,
			size: size ?? known.size,
			sha256: sha256 ?? known.sha256,
		};
		return new Remote(urls, this.#network, expected, true);
	}

	/** Downloads the file, or what is missing of it. The lock is held until the file has been read. */
	async #fetch(release: Release, signal: AbortSignal | undefined): Promise<OpenedFile> {
		const { complete, partial, absent } = await this.#store.survey(this.slot);
		// Another tab may have stored it while this one waited.
		if (complete && (await this.#isCurrent(complete, signal))) {
			return this.#read(complete, release, signal);
		}
		try {
			return await this.#begin(partial, release, signal);
		} catch (error) {
			if (isAbsent(error) && !complete) await this.#rememberAbsence();
			if (!(error instanceof TransientError) || error.status !== undefined) throw error;
			// The server cannot be reached: what is stored will do.
			if (complete) {
				const message = `${this.name} could not be checked for changes; the stored copy is used.`;
				this.#network.onNotice({ code: "stale", message });
				return await this.#read(complete, release, signal);
			}
			if (absent) throw new AbsentError(this.#request.urls[0]!);
			throw error;
		}
	}

	async #begin(
		partial: Stored | undefined,
		release: Release,
		signal: AbortSignal | undefined,
	): Promise<OpenedFile> {
		const begun = partial && (await this.#resume(partial, signal));
		const { entry, remote, transfer, index, controller } = begun ?? (await this.#start(signal));
		const cachedBytes = entry?.storedBytes ?? 0;
		const { size } = remote.version;
		const pieces = entry
			? this.#download({ entry, remote, transfer, index, controller }, release, signal)
			: this.#stream(transfer!, remote, release);
		return { size, likelySize: remote.likelySize, cachedBytes, pieces };
	}

	/** Goes on with a download that broke off; `undefined` when it cannot be continued. */
	async #resume(partial: Stored, signal: AbortSignal | undefined): Promise<Begun | undefined> {
		const { head } = partial.state;
		const entry = await this.#store.open(partial, "write").catch(() => undefined);
		if (!entry || head.kind !== "file") return undefined;
		const remote = this.#remote(head);
		const { size } = remote.version;
		let index = 0;
		while (entry.has(index)) index += 1;
		const controller = linked(signal);
		try {
			if (!isResumable(head)) throw new ChangedError(head.url);
			if (size !== undefined && index * BLOCK >= size) {
				// Nothing is missing but the last record, so no answer of the server tells the version.
				if (await this.#isCurrent(partial, signal)) return { entry, remote, index, controller };
				throw new ChangedError(head.url);
			}
			const transfer = await Transfer.open(remote, { start: index * BLOCK }, controller.signal);
			return { entry, remote, transfer, index, controller };
		} catch (error) {
			await entry.close();
			if (!(error instanceof ChangedError)) throw error;
			await this.#store.backend.remove(partial.name);
			return undefined;
		}
	}

	async #start(signal: AbortSignal | undefined): Promise<Begun> {
		const remote = this.#remote();
		const controller = linked(signal);
		const transfer = await Transfer.open(remote, { start: 0 }, controller.signal);
		try {
			const entry = await this.#create(remote);
			return { entry, remote, transfer, index: 0, controller };
		} catch (error) {
			await transfer.close();
			throw error;
		}
	}

	/** A new entry; `undefined` where it cannot be stored, and need not be. */
	async #create(remote: Remote): Promise<Entry | undefined> {
		const { name, urls, isVolatile: isAuxiliary } = this.#request;
		const { model } = this.#options;
		try {
			const size = remote.likelySize;
			const available = this.#store.backend.kind === "memory" ? undefined : await availableBytes();
			if (size !== undefined && available !== undefined && size > available)
				throw noRoom(name, size, available);
			const { sha256, version } = remote;
			const created = Date.now();
			return await this.#store.create(
				this.slot,
				fileRecord({ model, name, url: urls[0]!, ...version, sha256, created, isAuxiliary }),
			);
		} catch (error) {
			this.#notStored(error, remote.likelySize);
			return undefined;
		}
	}

	/** The file will not be stored: a notice, or the end of a load that insists on it. */
	#notStored(error: unknown, size: number | undefined): void {
		const isFull = isQuotaError(error) || (error as QuotaExceededError)?.code === "quota_exceeded";
		const known = isFull ? noRoom(this.name, size, undefined) : error;
		if (this.#options.required) throw known;
		const why = known instanceof Error ? known.message : String(known);
		this.#network.onNotice({
			code: isFull ? "quota_exceeded" : "not_cached",
			message: `${this.name} is loaded without being stored. ${why}`,
		});
	}

	/** Reads the file while it is downloaded into its entry. */
	async *#download(
		{ entry, remote, transfer, index: first, controller }: Begun & { entry: Entry },
		release: Release,
		signal: AbortSignal | undefined,
	): AsyncGenerator<Uint8Array> {
		const sender = new ProgressSender(this.#store.lockName(this.slot));
		const downloader = new Downloader(entry, remote, signal, () =>
			sender.send({ loadedBytes: entry.storedBytes, totalBytes: remote.likelySize }),
		);
		const verifier = await this.#verifier(remote);
		let isOpen = true;
		try {
			if (transfer) downloader.start(transfer, first, controller);
			for (let index = 0; ; index += 1) {
				let bytes = await entry.read(index);
				try {
					if (!bytes && !(await downloader.fetch(index))) break;
					bytes ??= await entry.read(index);
					if (!bytes) throw new StorageFailure("A block was not kept.");
				} catch (error) {
					if (!(error instanceof StorageFailure)) throw error;
					downloader.stop();
					await entry.close();
					isOpen = false;
					await this.#store.backend.remove(entry.name).catch(() => undefined);
					this.#notStored(error.cause, remote.likelySize);
					yield* this.#rest(remote, index, verifier, signal);
					return;
				}
				verifier?.update(bytes);
				yield bytes;
			}
			if (verifier && !verifier.isRight()) {
				await entry.close();
				isOpen = false;
				await this.#store.backend.remove(entry.name);
				throw verifier.mismatch();
			}
			await this.#complete(entry, remote.version.size!);
		} finally {
			sender.close();
			downloader.stop();
			controller.abort();
			if (isOpen) await entry.close();
			await release();
		}
	}

	/** The last byte was read; what is older is no longer needed. */
	async #complete(entry: Entry, size: number): Promise<void> {
		try {
			await entry.finish(size);
			await this.#store.removeOthers(this.slot, entry.name);
		} catch (error) {
			this.#notStored(error, size);
		}
	}

	/** Reads the file without storing it. */
	async *#stream(transfer: Transfer, remote: Remote, release: Release): AsyncGenerator<Uint8Array> {
		try {
			yield* this.#unstored(transfer, await this.#verifier(remote));
		} finally {
			await release();
		}
	}

	/** Reads on without storing, from a block on. */
	async *#rest(
		remote: Remote,
		index: number,
		verifier: Verifier | undefined,
		signal: AbortSignal | undefined,
	): AsyncGenerator<Uint8Array> {
		const transfer = await Transfer.open(remote, { start: index * BLOCK }, signal);
		yield* this.#unstored(transfer, verifier);
	}

	async *#unstored(transfer: Transfer, verifier: Verifier | undefined): AsyncGenerator<Uint8Array> {
		for await (const piece of transfer.pieces()) {
			verifier?.update(piece);
			yield piece;
		}
		if (verifier && !verifier.isRight()) throw verifier.mismatch();
	}

	#verifier({ sha256 }: Remote): Promise<Verifier | undefined> {
		return startVerifier(this.name, sha256);
	}

	/** So that a later load without the network knows that there is nothing to miss. */
	async #rememberAbsence(): Promise<void> {
		const { name, urls } = this.#request;
		const { model } = this.#options;
		try {
			await this.#store.removeOthers(this.slot);
			const head = absentRecord({ model, name, url: urls[0]!, created: Date.now() });
			await (await this.#store.create(this.slot, head)).close();
		} catch {
			// Only a later load without the network could have used it.
		}
	}
}
