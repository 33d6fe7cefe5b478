// Tells other tabs that wait for the same file how far its download is.

/** How far a download is, in bytes. */
export interface Shared {
	loadedBytes: number;
	totalBytes?: number;
}

const INTERVAL = 200;

/** Opens the channel of a file's lock; `undefined` where there are no channels. */
function open(lockName: string): BroadcastChannel | undefined {
	return typeof BroadcastChannel === "function" ? new BroadcastChannel(lockName) : undefined;
}

/** Tells how far a download is, now and then. */
export class ProgressSender {
	readonly #channel: BroadcastChannel | undefined;
	#sent = Number.NEGATIVE_INFINITY;

	constructor(lockName: string) {
		this.#channel = open(lockName);
	}

	send(shared: Shared): void {
		const now = performance.now();
		if (now - this.#sent < INTERVAL) return;
		this.#sent = now;
		this.#channel?.postMessage(shared);
	}

	close(): void {
		this.#channel?.close();
	}
}

/** Calls `onProgress` as the download of another tab advances, until the function that it gives is called. */
export function followProgress(lockName: string, onProgress: (shared: Shared) => void): () => void {
	const channel = open(lockName);
	if (channel) channel.onmessage = ({ data }: MessageEvent<Shared>) => onProgress(data);
	return () => channel?.close();
}
