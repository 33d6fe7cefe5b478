// How one load gets at files behind addresses: with which requests, kept in which store, checked against which
// digests.

import { InvalidArgumentError, QuotaExceededError } from "../errors.js";
import { Gate } from "../net/gate.js";
import { type Network, type Notice, PATIENCE, type Patience } from "../net/network.js";
import { Remote } from "../net/remote.js";
import { Transfer } from "../net/transfer.js";
import type { BackendKind } from "../store/backend.js";
import type { Store } from "../store/store.js";
import { type FileRequest, StoredFile } from "../store/stored-file.js";
import { startVerifier } from "../store/verifier.js";
import { type Checkpoint, type CheckpointFile, isWeights, type OpenedFile } from "./checkpoint.js";
import type { Pieces } from "./pieces.js";

/** Digests by file name, in hexadecimal, or that of the only file of weights. */
export type Digests = string | Record<string, string>;

/** How files are kept, as plain data. */
export interface CacheSettings {
	/** `"auto"`: the best that there is here. */
	backend: "auto" | BackendKind;
	revalidate: boolean;
	required: boolean;
}

/** How files are got, as plain data that can move into a worker. */
export interface AccessSettings {
	/** What the stored files will be known by. */
	model: string;
	/** Left out: nothing is stored. */
	cache?: CacheSettings;
	digests?: Digests;
	patience?: Partial<Patience>;
	/** Whether what is stored is only looked at. */
	isReadOnly?: boolean;
	hub: { endpoint: string; token?: string };
}

/** What getting files needs from outside. */
export interface AccessContext {
	/** Fetches URLs. */
	fetch: typeof fetch;
	/** Opens the place where files are kept; `undefined` where there is none. */
	openStore?: (kind: CacheSettings["backend"]) => Promise<Store | undefined>;
}

/** Who is told of what happens. */
export interface AccessWatch {
	gate?: Gate;
	onBytes?: (count: number) => void;
	onNotice?: (notice: Notice) => void;
	onWait?: Network["onWait"];
}

const nothing = () => undefined;

/** A file that is read from the network each time. */
class RemoteFile implements CheckpointFile {
	readonly name: string;
	readonly size: number | undefined;
	readonly #request: FileRequest;
	readonly #network: Network;

	constructor(request: FileRequest, network: Network) {
		this.name = request.name;
		this.size = request.size;
		this.#request = request;
		this.#network = network;
	}

	async open(signal: AbortSignal | undefined): Promise<OpenedFile> {
		const { urls, size, sha256 } = this.#request;
		const remote = new Remote(urls, this.#network, { size, sha256 });
		const transfer = await Transfer.open(remote, { start: 0 }, signal);
		const pieces = verified(this.name, remote.sha256, transfer.pieces());
		return { size: remote.version.size, likelySize: remote.likelySize, cachedBytes: 0, pieces };
	}

	async look() {
		return { stored: 0 };
	}
}

/** A file that is read from the store where it is there, and that is not stored by reading it. */
function lookingFile(stored: StoredFile, remote: RemoteFile): CheckpointFile {
	return {
		name: stored.name,
		size: stored.size,
		look: () => stored.look(),
		async open(signal) {
			const { stored: bytes, size } = await stored.look();
			const isWhole = size !== undefined && bytes === size;
			return isWhole ? stored.open(signal) : remote.open(signal);
		},
	};
}

/** Pieces that are checked against a digest, where there is one. */
async function* verified(name: string, sha256: string | undefined, pieces: Pieces) {
	const verifier = await startVerifier(name, sha256);
	for await (const piece of pieces) {
		verifier?.update(piece);
		yield piece;
	}
	if (verifier && !verifier.isRight()) throw verifier.mismatch();
}

export class Access {
	readonly settings: AccessSettings;
	readonly network: Network;
	readonly #store: Store | undefined;
	/** The slots of the files that were asked for. */
	readonly #slots = new Set<string>();

	private constructor(settings: AccessSettings, network: Network, store: Store | undefined) {
		this.settings = settings;
		this.network = network;
		this.#store = store;
	}

	static async open(settings: AccessSettings, context: AccessContext, watch: AccessWatch): Promise<Access> {
		const { cache, hub, patience } = settings;
		const hubOrigin = new URL(hub.endpoint).origin;
		const network: Network = {
			fetch: context.fetch,
			patience: { ...PATIENCE, ...patience },
			gate: watch.gate ?? new Gate(),
			headers(url): Record<string, string> {
				const isHub = hub.token !== undefined && new URL(url).origin === hubOrigin;
				return isHub ? { Authorization: `Bearer ${hub.token}` } : {};
			},
			onBytes: watch.onBytes ?? nothing,
			onNotice: watch.onNotice ?? nothing,
			onWait: watch.onWait ?? nothing,
		};
		const store = cache && (await context.openStore?.(cache.backend));
		if (cache && !store && (cache.required || context.openStore)) {
			const message =
				"There is no storage for models here, as in some private windows: the model is not kept.";
			if (cache.required) throw new QuotaExceededError(message);
			network.onNotice({ code: "not_cached", message });
		}
		return new Access(settings, network, store);
	}

	/** A file behind addresses. */
	file(request: FileRequest): CheckpointFile {
		const { cache, model } = this.settings;
		const known = { ...request, sha256: this.#digest(request.name) ?? request.sha256 };
		const isWeb = known.urls.every((url) => /^https?:/.test(url));
		if (!cache || !this.#store || !isWeb) return new RemoteFile(known, this.network);
		const { revalidate, required } = cache;
		const stored = new StoredFile(known, this.#store, this.network, { model, revalidate, required });
		this.#slots.add(stored.slot);
		return this.settings.isReadOnly ? lookingFile(stored, new RemoteFile(known, this.network)) : stored;
	}

	/** After a load: forgets stored files of the model that it did not ask for, as they are of an older version. */
	async tidy(): Promise<void> {
		if (this.#slots.size === 0) return;
		// A failure only leaves more stored than is needed.
		await this.#store?.removeUnused(this.settings.model, this.#slots).catch(() => undefined);
	}

	/** A checkpoint whose files do not come from {@link file}, checked against the digests. */
	checkLocal(checkpoint: Checkpoint): Checkpoint {
		if (this.settings.digests === undefined) return checkpoint;
		return {
			close: async () => checkpoint.close?.(),
			sideFiles: async (signal) => {
				const files = await checkpoint.sideFiles(signal);
				for (const { name, bytes } of files) {
					const verifier = await startVerifier(name, this.#digest(name));
					verifier?.update(bytes);
					if (verifier && !verifier.isRight()) throw verifier.mismatch();
				}
				return files;
			},
			weights: async (shards, signal) =>
				(await checkpoint.weights(shards, signal)).map((file) => ({
					name: file.name,
					size: file.size,
					open: async (signal) => {
						const opened = await file.open(signal);
						return { ...opened, pieces: verified(file.name, this.#digest(file.name), opened.pieces) };
					},
				})),
		};
	}

	/** A checkpoint that is refused when a digest was given for a file that it does not have. */
	checkNames(checkpoint: Checkpoint): Checkpoint {
		const { digests } = this.settings;
		if (digests === undefined) return checkpoint;
		const names = new Set<string>();
		return {
			close: async () => checkpoint.close?.(),
			async sideFiles(signal) {
				const files = await checkpoint.sideFiles(signal);
				for (const { name } of files) names.add(name);
				return files;
			},
			async weights(shards, signal) {
				const files = await checkpoint.weights(shards, signal);
				for (const { name } of files) names.add(name);
				if (typeof digests === "string" && files.length > 1) {
					throw new InvalidArgumentError(
						"loadModel: 'integrity' is one digest, but the weights are several files: give an object with a digest for each file's name.",
					);
				}
				const unknown =
					typeof digests === "string" ? undefined : Object.keys(digests).find((name) => !names.has(name));
				if (unknown === undefined) return files;
				throw new InvalidArgumentError(
					`loadModel: 'integrity' names the file ${unknown}, which the model does not have. Its files are: ${[...names].join(", ")}.`,
				);
			},
		};
	}

	#digest(name: string): string | undefined {
		const { digests } = this.settings;
		if (typeof digests === "string") return isWeights(name) ? digests : undefined;
		return digests?.[name];
	}
}
