// Opens a URL as a stream of bytes, and turns every way in which that fails into an error that says what
// to do.

import { AbortedError, abortedBy, NetworkError } from "../errors.js";
import { type Pieces, peek, split } from "./pieces.js";
import { SNIFF_BYTES, sniff } from "./sniff.js";

/** An answer that is a file. */
export interface Download {
	/** The address after redirects. */
	url: string;
	/** Bytes, where the server tells. */
	size?: number;
	/** The first bytes. */
	head: Uint8Array;
	/** All bytes, the first included. */
	pieces: Pieces;
	/** Ends a download that will not be read. */
	close(): Promise<void>;
}

/** A server gave a page where a file was asked for. */
export class PageError extends NetworkError {
	constructor(url: string, status: number) {
		super(
			`${url} gave an HTML page instead of a file. Use the address of the file itself: on Hugging Face that has /resolve/ where the page has /blob/.`,
			url,
			{ status },
		);
	}
}

const ADVICE: Record<number, string> = {
	401: "The file needs a login: it may be private or gated.",
	403: "The server does not allow it: the file may be private or gated.",
	404: "There is no such file: check the address.",
	410: "The file has been removed.",
	429: "The server asks to slow down: try again later.",
};

function statusError(url: string, status: number): NetworkError {
	const fallback = status >= 500 ? "The server failed: try again later." : "The server refused the request.";
	return new NetworkError(`${url}: HTTP status ${status}. ${ADVICE[status] ?? fallback}`, url, { status });
}

async function request(url: string, init: RequestInit, fetcher: typeof fetch): Promise<Response> {
	try {
		return await fetcher(url, init);
	} catch (error) {
		if (init.signal?.aborted) throw abortedBy(init.signal);
		throw new NetworkError(
			`${url} could not be fetched. Either the server cannot be reached, or it does not let this page read the file: check the address and the connection; a file on another site needs the response header Access-Control-Allow-Origin (CORS).`,
			url,
			{ cause: error },
		);
	}
}

/** The body's length that the server promises; unknown when the transfer is compressed. */
function contentLength(response: Response): number | undefined {
	if (response.headers.get("content-encoding")) return undefined;
	const length = Number(response.headers.get("content-length") ?? Number.NaN);
	return Number.isSafeInteger(length) && length >= 0 ? length : undefined;
}

/** The body, checked to be as long as promised. */
async function* body(
	response: Response,
	url: string,
	size: number | undefined,
	signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
	const reader = response.body?.getReader();
	if (!reader) return;
	let received = 0;
	const cut = (cause?: unknown) => {
		const total = size === undefined ? "" : ` of ${size}`;
		const message = `The connection was cut after ${received}${total} bytes of ${url}. Check the connection and try again.`;
		return new NetworkError(message, url, { cause });
	};
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) break;
			received += value.length;
			yield value;
		}
	} catch (error) {
		if (signal?.aborted) throw abortedBy(signal);
		throw error instanceof AbortedError ? error : cut(error);
	} finally {
		// Closes the connection when the reader of this stream leaves early; after the end it does nothing.
		reader.cancel().catch(() => undefined);
	}
	if (size !== undefined && received < size) throw cut();
}

/**
 * Opens a URL.
 *
 * @throws NetworkError for anything but a file, and AbortedError
 */
export async function download(
	url: string,
	fetcher: typeof fetch,
	signal: AbortSignal | undefined,
): Promise<Download> {
	const response = await request(url, { signal }, fetcher);
	if (!response.ok) {
		response.body?.cancel().catch(() => undefined);
		throw statusError(url, response.status);
	}
	const size = contentLength(response);
	const { head, pieces, close } = await peek(body(response, url, size, signal), SNIFF_BYTES);
	const isPage = response.headers.get("content-type")?.toLowerCase().startsWith("text/html");
	if (isPage || sniff(head) === "html") {
		await close();
		throw new PageError(url, response.status);
	}
	return { url: response.url || url, size, head, pieces: split(pieces), close };
}

/** A file's size, without its bytes; `undefined` when the server does not tell. */
export async function remoteSize(
	url: string,
	fetcher: typeof fetch,
	signal: AbortSignal | undefined,
): Promise<number | undefined> {
	const response = await request(url, { method: "HEAD", signal }, fetcher);
	return response.ok ? contentLength(response) : undefined;
}
