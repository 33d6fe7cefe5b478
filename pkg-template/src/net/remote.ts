// One file on the network, under one address or several: finds an address that works, asks again where
// that may help, and sees to it that all bytes are of one version of the file.

import { NetworkError } from "../errors.js";
import { delay } from "./delay.js";
import { ChangedError, TransientError, UnreachableError } from "./http-errors.js";
import type { Network } from "./network.js";
import { type Answer, isSameVersion, request, type Span, type Validators } from "./request.js";

/** What is known of a file before it is asked for. */
export interface Expected extends Validators {
	/** SHA-256 in hexadecimal. It tells the version better than any server does. */
	sha256?: string;
}

/** A file, its addresses and what has been learnt of them. */
export class Remote {
	readonly network: Network;
	/** Whether the bytes are kept by Sterna. */
	readonly isStored: boolean;
	readonly #urls: readonly string[];
	#url = 0;
	#failures = 0;
	#hasAnswered = false;
	#version: Validators;
	#sha256: string | undefined;
	#hasRanges: boolean | undefined;
	#likelySize: number | undefined;

	constructor(urls: readonly string[], network: Network, expected: Expected = {}, isStored = false) {
		this.#urls = urls;
		this.network = network;
		this.isStored = isStored;
		const { sha256, ...version } = expected;
		this.#version = version;
		this.#sha256 = sha256;
	}

	/** What is known of the file's version. */
	get version(): Validators {
		return this.#version;
	}

	/** Bytes of the file, for showing progress. */
	get likelySize(): number | undefined {
		return this.#version.size ?? this.#likelySize;
	}

	get sha256(): string | undefined {
		return this.#sha256;
	}

	/** Whether the server gives parts of the file; `undefined` while that is not known. */
	get hasRanges(): boolean | undefined {
		return this.#hasRanges;
	}

	/** New bytes came: earlier failures count no more. */
	progressed(): void {
		this.#failures = 0;
	}

	/** Takes what the end of an answer, or a refused range, said of the size. */
	learnSize(size: number): void {
		this.#version = { ...this.#version, size };
	}

	/** The same file for a further connection, which is given up at its first failure. */
	further(): Remote {
		const network = { ...this.network, patience: { ...this.network.patience, retries: 0 }, onNotice() {} };
		const expected = { ...this.#version, sha256: this.#sha256 };
		return new Remote([this.#urls[this.#url]!], network, expected, this.isStored);
	}

	/**
	 * Asks for a span until it gets an answer, which may begin earlier than asked.
	 *
	 * @throws NetworkError when no address gives the file, ChangedError when it is another version by now
	 */
	async connect(span: Span, signal: AbortSignal | undefined): Promise<Answer> {
		for (;;) {
			await this.network.gate.opened(signal);
			const url = this.#urls[this.#url]!;
			try {
				return await this.#check(await this.#ask(url, span, signal), url, span);
			} catch (error) {
				await this.recover(error, signal);
			}
		}
	}

	/** Asks once for a span, or for the whole file where the server does not give spans. */
	async #ask(url: string, span: Span, signal: AbortSignal | undefined): Promise<Answer> {
		const ask = (asked: Span) => request(url, asked, this.network, signal, this.isStored);
		if (this.#hasRanges === false) return ask({ start: 0 });
		try {
			return await ask(span);
		} catch (error) {
			const isUnclear = error instanceof UnreachableError && this.#hasRanges === undefined;
			if (!isUnclear || span.start === 0) throw error;
			// Another site's server may refuse the preflight request that a range takes in some browsers. If it is
			// the network that is away, the whole file is out of reach too.
			const answer = await ask({ start: 0 });
			this.#hasRanges = false;
			return answer;
		}
	}

	/**
	 * Waits until it makes sense to ask again, or goes on to the next address.
	 *
	 * @throws the error when there is nothing more to be tried
	 */
	async recover(error: unknown, signal: AbortSignal | undefined): Promise<void> {
		if (!(error instanceof NetworkError)) throw error;
		const { patience, onNotice } = this.network;
		if (error instanceof TransientError && this.#failures < this.#retries(error)) {
			const wait = error.retryAfter ?? patience.retryDelay * 2 ** this.#failures;
			if (wait <= patience.longestWait) {
				this.#failures += 1;
				onNotice({ code: "retrying", message: error.message });
				await delay(wait, signal);
				return;
			}
		}
		if (this.#url + 1 >= this.#urls.length) throw error;
		this.#url += 1;
		this.#failures = 0;
		this.#hasAnswered = false;
		this.#hasRanges = undefined;
		onNotice({ code: "mirror", message: `${error.message} Trying ${this.#urls[this.#url]}.` });
	}

	/** A server that never answered is most likely not there, or not for this page: one more try tells. */
	#retries(error: TransientError): number {
		const { retries } = this.network.patience;
		if (this.#hasAnswered || !(error instanceof UnreachableError)) return retries;
		const isOffline = globalThis.navigator?.onLine === false;
		return isOffline ? 0 : Math.min(retries, 1);
	}

	async #check(answer: Answer, url: string, span: Span): Promise<Answer> {
		this.#hasAnswered = true;
		const problem = this.#problem(answer, url, span);
		if (problem) {
			await answer.close();
			throw problem;
		}
		if (answer.offset > 0 || answer.hasRanges) this.#hasRanges = true;
		else if (span.start > 0) this.#hasRanges = false;
		const { etag, lastModified, size } = answer.validators;
		// The first answer sets the version; later ones may add to it.
		this.#version = {
			etag: this.#version.etag ?? etag,
			lastModified: this.#version.lastModified ?? lastModified,
			size: this.#version.size ?? size,
		};
		this.#likelySize ??= answer.likelySize;
		this.#sha256 ??= answer.sha256;
		return answer;
	}

	#problem({ validators, offset, sha256 }: Answer, url: string, span: Span): NetworkError | undefined {
		if (offset > span.start) {
			return new NetworkError(
				`${url}: the server gave bytes from ${offset} on where those from ${span.start} on were asked for.`,
				url,
			);
		}
		// With a known digest the version is checked by what counts, the bytes; only the size can be told early.
		const known = this.#sha256 ? { size: this.#version.size } : this.#version;
		const isOther = sha256 !== undefined && this.#sha256 !== undefined && sha256 !== this.#sha256;
		return isOther || isSameVersion(known, validators) === false ? new ChangedError(url) : undefined;
	}
}
