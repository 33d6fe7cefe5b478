// Byte streams as async iterables of pieces that are small enough to stop between any two of them.

/** The largest piece that is handed on: some milliseconds of work. */
export const MAX_PIECE = 1 << 20;

/** Pieces of bytes, in order. A piece's bytes are valid until the next one is asked for. */
export type Pieces = AsyncIterable<Uint8Array>;

/** Cuts pieces that are too large. */
export async function* split(pieces: Pieces | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
	for await (const piece of pieces) {
		for (let start = 0; start < piece.length; start += MAX_PIECE) {
			yield piece.subarray(start, start + MAX_PIECE);
		}
	}
}

/** Reads a blob without ever holding all of it. */
export async function* readBlob(blob: Blob): AsyncGenerator<Uint8Array> {
	for (let start = 0; start < blob.size; start += MAX_PIECE) {
		yield new Uint8Array(await blob.slice(start, start + MAX_PIECE).arrayBuffer());
	}
}

/** A stream whose first bytes are known. */
export interface Peeked {
	/** The first bytes: as many as were asked for, fewer only where the stream is shorter. */
	head: Uint8Array;
	/** The whole stream, the first bytes included; it can be read once. */
	pieces: Pieces;
	/** Closes a stream that will not be read. */
	close(): Promise<void>;
}

/** Looks at a stream's first bytes. */
export async function peek(pieces: Pieces, count: number): Promise<Peeked> {
	const iterator = pieces[Symbol.asyncIterator]();
	const seen: Uint8Array[] = [];
	let length = 0;
	while (length < count) {
		const { done, value } = await iterator.next();
		if (done) break;
		seen.push(value.slice());
		length += value.length;
	}
	async function* replay(): AsyncGenerator<Uint8Array> {
		try {
			yield* seen;
			yield* { [Symbol.asyncIterator]: () => iterator };
		} finally {
			await iterator.return?.();
		}
	}
	return {
		head: concat(seen).subarray(0, count),
		pieces: replay(),
		async close() {
			await iterator.return?.();
		},
	};
}

/** All bytes of a short stream, or `undefined` when it has more than `limit`. */
export async function readAll(pieces: Pieces, limit: number): Promise<Uint8Array | undefined> {
	const all: Uint8Array[] = [];
	let length = 0;
	for await (const piece of pieces) {
		length += piece.length;
		if (length > limit) return undefined;
		all.push(piece.slice());
	}
	return concat(all);
}

function concat(parts: Uint8Array[]): Uint8Array {
	if (parts.length === 1) return parts[0]!;
	const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
	let offset = 0;
	for (const part of parts) {
		whole.set(part, offset);
		offset += part.length;
	}
	return whole;
}
