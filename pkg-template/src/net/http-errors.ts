// What can go wrong with a request, and whether asking again may help.

import { NetworkError } from "../errors.js";

/** A failure that may be over at the next attempt. */
export class TransientError extends NetworkError {
	/** How long the server asks to wait, in milliseconds. */
	readonly retryAfter: number | undefined;

	constructor(
		message: string,
		url: string,
		options: ErrorOptions & { status?: number; retryAfter?: number } = {},
	) {
		super(message, url, options);
		this.retryAfter = options.retryAfter;
	}
}

/** No answer at all: the server is not there, does not answer, or its answer may not be read (CORS). */
export class UnreachableError extends TransientError {
	constructor(url: string, options?: ErrorOptions) {
		super(
			`${url} could not be fetched. Either the server cannot be reached, or it does not let this page read the file: check the address and the connection; a file on another site needs the response header Access-Control-Allow-Origin (CORS).`,
			url,
			options,
		);
	}
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

/** The file is not the one any more of which there are bytes already. */
export class ChangedError extends NetworkError {
	constructor(url: string) {
		super(
			`${url} changed on the server while it was being downloaded. Load the model again to get the new file.`,
			url,
		);
	}
}

/** The server did not have the file when it was last asked, and cannot be asked now. */
export class AbsentError extends NetworkError {
	constructor(url: string) {
		super(`${url}: there was no such file when it was last asked for.`, url, { status: 404 });
	}
}

/** A part beyond the file's end was asked for. */
export class RangeEndError extends NetworkError {
	/** Bytes of the file, where the server tells. */
	readonly size: number | undefined;

	constructor(url: string, size: number | undefined) {
		super(`${url}: HTTP status 416. The file is shorter than it was: load the model again.`, url, {
			status: 416,
		});
		this.size = size;
	}
}

const ADVICE: Record<number, string> = {
	401: "The file needs a login: it may be private or gated.",
	403: "The server does not allow it: the file may be private or gated.",
	404: "There is no such file: check the address.",
	410: "The file has been removed.",
	429: "The server asks to slow down: try again later.",
};

const TRANSIENT = new Set([408, 425, 429, 500, 502, 503, 504]);

/** `Retry-After` in milliseconds: it gives seconds, or a date. */
function retryAfter(headers: Headers): number | undefined {
	const value = headers.get("retry-after");
	if (value === null) return undefined;
	const seconds = Number(value);
	if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1000;
	const date = Date.parse(value);
	return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** The error for an answer that is not a file. */
export function statusError(url: string, { status, headers }: Response): NetworkError {
	if (status === 416) {
		const size = /^bytes \*\/(\d+)$/.exec(headers.get("content-range") ?? "")?.[1];
		return new RangeEndError(url, size === undefined ? undefined : Number(size));
	}
	const wait = retryAfter(headers);
	const fallback = status >= 500 ? "The server failed: try again later." : "The server refused the request.";
	const when = wait === undefined ? "" : ` It asks to wait ${Math.ceil(wait / 1000)} s.`;
	const message = `${url}: HTTP status ${status}. ${ADVICE[status] ?? fallback}${when}`;
	return TRANSIENT.has(status)
		? new TransientError(message, url, { status, retryAfter: wait })
		: new NetworkError(message, url, { status });
}

/**
 * Whether an error says that an optional file is not there. Servers of single-page apps answer with a page,
 * and some stores of files answer 403 where nothing is.
 */
export function isAbsent(error: unknown): boolean {
	if (!(error instanceof NetworkError) || error instanceof TransientError) return false;
	return error.status !== undefined && error.status < 500;
}
