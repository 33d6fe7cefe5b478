// One HTTP request for a file, or for a part of one: checks the answer, and turns every way in which that
// fails into an error that says what to do.

import { AbortedError, abortedBy, type NetworkError, throwIfAborted } from "../errors.js";
import { type Pieces, peek, split } from "../files/pieces.js";
import { SNIFF_BYTES, sniff } from "../files/sniff.js";
import { PageError, statusError, TransientError, UnreachableError } from "./http-errors.js";
import type { Network } from "./network.js";

/** What tells one version of a file from another. */
export interface Validators {
	etag?: string;
	lastModified?: string;
	/** Bytes of the whole file, where that is sure. */
	size?: number;
}

/** An answer that is a file, or the part of it that was asked for. */
export interface Answer {
	/** The address after redirects. */
	url: string;
	/** What the server says of the whole file. */
	validators: Validators;
	/** Bytes of the whole file, unless the transfer is compressed, which other sites' servers need not tell. */
	likelySize?: number;
	/** SHA-256 in hexadecimal, where the server gives it (the Hugging Face hub does). */
	sha256?: string;
	/** Where in the file the bytes begin: 0, whatever was asked for, when the server has no ranges. */
	offset: number;
	/** Whether the server gives parts of the file. */
	hasRanges: boolean;
	/** The first bytes of the answer. */
	head: Uint8Array;
	/** The bytes, the first included. */
	pieces: Pieces;
	/** Ends an answer that will not be read. */
	close(): Promise<void>;
}

/** Bytes of a file, `end` exclusive. */
export interface Span {
	start: number;
	end?: number;
}

/** A signal that follows another one, and that a lack of life aborts too. */
class Watchdog {
	readonly #controller = new AbortController();
	readonly #outer: AbortSignal | undefined;
	readonly #timeout: number;
	readonly #forward = () => this.#stop();
	/** Rejects when the signal is aborted: not every `fetch` that a caller gives obeys signals. */
	readonly #stopped: Promise<never>;
	#stop = () => {};
	#isLate = false;

	constructor(outer: AbortSignal | undefined, timeout: number) {
		this.#outer = outer;
		this.#timeout = timeout;
		this.#stopped = new Promise((_, reject) => {
			this.#stop = () => {
				this.#controller.abort();
				reject(new Error("stopped"));
			};
		});
		this.#stopped.catch(() => undefined);
		outer?.addEventListener("abort", this.#forward, { once: true });
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	/** Awaits a sign of life. */
	async guard<T>(life: Promise<T>): Promise<T> {
		const timer = setTimeout(() => {
			this.#isLate = true;
			this.#stop();
		}, this.#timeout);
		try {
			return await Promise.race([life, this.#stopped]);
		} finally {
			clearTimeout(timer);
		}
	}

	/** The error of what failed: an abort from outside, lateness, or `otherwise`. */
	explain(url: string, otherwise: NetworkError): Error {
		if (this.#outer?.aborted) return abortedBy(this.#outer);
		if (!this.#isLate) return otherwise;
		const seconds = Math.ceil(this.#timeout / 1000);
		return new TransientError(
			`${url}: the server sent nothing for ${seconds} s. Check the connection and try again.`,
			url,
		);
	}

	end(): void {
		this.#outer?.removeEventListener("abort", this.#forward);
	}
}

const wholeNumber = (text: string | null | undefined) => {
	const value = text ? Number(text) : Number.NaN;
	return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
};

/** `bytes 100-199/1000`; other sites' servers rarely let a page read it. */
function contentRange(headers: Headers): { start?: number; size?: number } {
	const [, start, size] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
	return { start: wholeNumber(start), size: wholeNumber(size) };
}

/** The body's length that the server promises; unknown when the transfer is compressed. */
function contentLength(headers: Headers): number | undefined {
	if (headers.get("content-encoding")) return undefined;
	return wholeNumber(headers.get("content-length"));
}

/** The whole file's size as far as an answer tells it, whose body is the part from `offset` on. */
function sizes({ headers, status, type }: Response, offset: number, isLast: boolean) {
	const { size } = contentRange(headers);
	const length = contentLength(headers);
	const counted = size ?? (isLast && length !== undefined ? offset + length : undefined);
	// A part is never compressed; of a whole file, another site's server hides whether it is.
	const isSure = size !== undefined || status === 206 || type !== "cors";
	return { likelySize: counted, size: isSure ? counted : undefined };
}

function validatorsOf({ headers }: Response, size: number | undefined): Validators {
	return {
		etag: headers.get("etag") ?? undefined,
		lastModified: headers.get("last-modified") ?? undefined,
		size,
	};
}

/** The hub's digest of a large file is its ETag. */
function sha256Of(headers: Headers): string | undefined {
	const digest = headers.get("x-linked-etag")?.replace(/^(W\/)?"|"$/g, "");
	return digest && /^[0-9a-f]{64}$/.test(digest) ? digest : undefined;
}

/** Whether two answers are of the same version of a file; `undefined` when they do not tell. */
export function isSameVersion(one: Validators, other: Validators): boolean | undefined {
	if (one.size !== undefined && other.size !== undefined && one.size !== other.size) return false;
	if (one.etag && other.etag) return one.etag === other.etag;
	if (one.lastModified && other.lastModified) return one.lastModified === other.lastModified;
	return undefined;
}

/** The body's pieces, checked to be as many bytes as promised. */
async function* body(
	response: Response,
	url: string,
	length: number | undefined,
	watchdog: Watchdog,
	network: Network,
): AsyncGenerator<Uint8Array> {
	const reader = response.body?.getReader();
	if (!reader) return;
	let received = 0;
	const cut = (cause?: unknown) => {
		const total = length === undefined ? "" : ` of ${length}`;
		const message = `The connection was cut after ${received}${total} bytes of ${url}. Check the connection and try again.`;
		return new TransientError(message, url, { cause });
	};
	try {
		for (;;) {
			const { done, value } = await watchdog.guard(reader.read());
			if (done) break;
			received += value.length;
			network.onBytes(value.length);
			yield value;
		}
	} catch (error) {
		throw watchdog.explain(url, error instanceof TransientError ? error : cut(error));
	} finally {
		watchdog.end();
		// Closes the connection when the reader of this stream leaves early; after the end it does nothing.
		reader.cancel().catch(() => undefined);
	}
	if (length !== undefined && received < length) throw cut();
}

/** Sends a request; its signal stays linked until the watchdog ends. */
async function send(url: string, init: RequestInit, network: Network, watchdog: Watchdog): Promise<Response> {
	const headers = { ...network.headers(url), ...init.headers };
	try {
		return await watchdog.guard(network.fetch(url, { ...init, headers, signal: watchdog.signal }));
	} catch (error) {
		watchdog.end();
		if (error instanceof AbortedError) throw error;
		throw watchdog.explain(url, new UnreachableError(url, { cause: error }));
	}
}

/**
 * Asks for a file, or a span of it.
 *
 * @param isStored whether the bytes are kept by Sterna, so that the browser's own cache need not hold them too
 * @throws NetworkError for anything but a file, {@link TransientError} where asking again may help, AbortedError
 */
export async function request(
	url: string,
	{ start, end }: Span,
	network: Network,
	signal: AbortSignal | undefined,
	isStored = false,
): Promise<Answer> {
	throwIfAborted(signal);
	const watchdog = new Watchdog(signal, network.patience.stallTimeout);
	const isWhole = start === 0 && end === undefined;
	const range: Record<string, string> = isWhole
		? {}
		: { Range: `bytes=${start}-${end === undefined ? "" : end - 1}` };
	const cache = isStored ? ({ cache: "no-store" } as const) : {};
	const response = await send(url, { headers: range, ...cache }, network, watchdog);
	if (!response.ok) {
		watchdog.end();
		response.body?.cancel().catch(() => undefined);
		throw statusError(url, response);
	}
	const { headers, status } = response;
	const isPart = status === 206;
	const offset = isPart ? (contentRange(headers).start ?? start) : 0;
	const { size, likelySize } = sizes(response, offset, !isPart || end === undefined);
	const stream = body(response, url, contentLength(headers), watchdog, network);
	const { head, pieces, close } = await peek(stream, SNIFF_BYTES);
	const isPage = headers.get("content-type")?.toLowerCase().startsWith("text/html");
	if (offset === 0 && (isPage || sniff(head) === "html")) {
		await close();
		throw new PageError(url, status);
	}
	return {
		url: response.url || url,
		validators: validatorsOf(response, size),
		likelySize,
		sha256: sha256Of(headers),
		offset,
		hasRanges: isPart || headers.get("accept-ranges") === "bytes",
		head,
		pieces: split(pieces),
		close,
	};
}

/** What a server says of a file, without its bytes. */
export async function requestHead(
	url: string,
	network: Network,
	signal: AbortSignal | undefined,
	timeout = network.patience.stallTimeout,
): Promise<Validators> {
	const watchdog = new Watchdog(signal, timeout);
	const response = await send(url, { method: "HEAD" }, network, watchdog);
	watchdog.end();
	if (!response.ok) throw statusError(url, response);
	if (response.headers.get("content-type")?.toLowerCase().startsWith("text/html")) {
		throw new PageError(url, response.status);
	}
	return validatorsOf(response, sizes(response, 0, true).size);
}
