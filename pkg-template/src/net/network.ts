// How the requests of one load are made: with what, how patiently, and who is told.

import type { Gate } from "./gate.js";

/** How patient a load is with servers. Times are milliseconds. */
export interface Patience {
	/** Attempts in a row that may fail without a new byte. */
	retries: number;
	/** The wait before the first new attempt; each further one takes twice as long. */
	retryDelay: number;
	/** How long a connection may give nothing. */
	stallTimeout: number;
	/** The longest wait that a server may ask for with `Retry-After`. */
	longestWait: number;
	/** How long the question whether a stored file is still current may take. */
	checkTimeout: number;
	/** The most connections for one file. */
	connections: number;
}

export const PATIENCE: Patience = {
	retries: 5,
	retryDelay: 500,
	stallTimeout: 30_000,
	longestWait: 60_000,
	checkTimeout: 3000,
	connections: 4,
};

/** Something that a person should know, and that does not end the load. */
export interface Notice {
	code: "retrying" | "mirror" | "quota_exceeded" | "not_cached" | "stale" | "repaired";
	message: string;
}

/** What the requests of a load share. */
export interface Network {
	fetch: typeof fetch;
	patience: Patience;
	gate: Gate;
	/** Further headers for an address. */
	headers(url: string): Record<string, string>;
	/** Is told of bytes as they come from the network. */
	onBytes(count: number): void;
	onNotice(notice: Notice): void;
	/** Is told, while another tab downloads the same file, how far that is. */
	onWait(progress: { loadedBytes: number; totalBytes?: number } | undefined): void;
}
