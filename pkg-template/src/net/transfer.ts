// A file's bytes in order, over cut connections, stalls, pauses and servers without ranges.

import { NetworkError, throwIfAborted } from "../errors.js";
import { RangeEndError, TransientError } from "./http-errors.js";
import type { Remote } from "./remote.js";
import type { Answer, Span } from "./request.js";

/** What ends one connection: the outer signal, or that the gate closes. */
class Connection {
	wasPaused = false;
	readonly #controller = new AbortController();
	readonly #outer: AbortSignal | undefined;
	readonly #stop = () => this.#controller.abort(this.#outer?.reason);
	readonly #offGate: () => void;

	constructor({ network: { gate } }: Remote, outer: AbortSignal | undefined) {
		throwIfAborted(outer);
		this.#outer = outer;
		outer?.addEventListener("abort", this.#stop, { once: true });
		this.#offGate = gate.onChange(() => {
			if (!gate.isPaused) return;
			this.wasPaused = true;
			this.#controller.abort();
		});
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	end(): void {
		this.#outer?.removeEventListener("abort", this.#stop);
		this.#offGate();
	}
}

/** The bytes of a span. */
export class Transfer {
	readonly #remote: Remote;
	readonly #signal: AbortSignal | undefined;
	readonly #end: number | undefined;
	#position: number;
	#answer: Answer | undefined;
	#connection: Connection | undefined;

	private constructor(remote: Remote, { start, end }: Span, signal: AbortSignal | undefined) {
		this.#remote = remote;
		this.#position = start;
		this.#end = end;
		this.#signal = signal;
	}

	/** Connects, so that the file's version and size are known as far as the server tells them. */
	static async open(remote: Remote, span: Span, signal: AbortSignal | undefined): Promise<Transfer> {
		const transfer = new Transfer(remote, span, signal);
		await transfer.#connect();
		return transfer;
	}

	/** The first bytes that the server sent: those of the file, for a span from its beginning. */
	get head(): Uint8Array {
		return this.#answer?.head ?? new Uint8Array();
	}

	/** The address after redirects. */
	get url(): string | undefined {
		return this.#answer?.url;
	}

	/** All bytes of the span, once. After the last one of a file its size is known. */
	async *pieces(): AsyncGenerator<Uint8Array> {
		try {
			while (!this.#isComplete()) {
				let failure: unknown;
				try {
					if (!this.#answer) await this.#connect();
					yield* this.#read(this.#answer!);
					if (this.#isAtEnd()) return;
					const url = this.url ?? "";
					failure = new TransientError(
						`${url}: the answer ended early. Check the connection and try again.`,
						url,
					);
				} catch (error) {
					failure = error;
				}
				await this.#interrupted(failure);
			}
		} finally {
			await this.close();
		}
	}

	async close(): Promise<void> {
		const answer = this.#answer;
		this.#answer = undefined;
		this.#connection?.end();
		await answer?.close();
	}

	#isComplete(): boolean {
		const end = this.#end ?? this.#remote.version.size;
		return end !== undefined && this.#position >= end && this.#position > 0;
	}

	async #connect(): Promise<void> {
		for (;;) {
			await this.#remote.network.gate.opened(this.#signal);
			const connection = new Connection(this.#remote, this.#signal);
			this.#connection = connection;
			try {
				const span = { start: this.#position, end: this.#end };
				this.#answer = await this.#remote.connect(span, connection.signal);
				return;
			} catch (error) {
				connection.end();
				if (!connection.wasPaused || this.#signal?.aborted) throw error;
			}
		}
	}

	async *#read(answer: Answer): AsyncGenerator<Uint8Array> {
		let at = answer.offset;
		for await (const piece of answer.pieces) {
			const skip = Math.min(Math.max(this.#position - at, 0), piece.length);
			at += piece.length;
			const limit = this.#end === undefined ? piece.length : piece.length - Math.max(at - this.#end, 0);
			if (limit <= skip) continue;
			this.#position += limit - skip;
			this.#remote.progressed();
			yield piece.subarray(skip, limit);
			if (this.#isComplete() && this.#end !== undefined) return;
		}
	}

	/**
	 * Whether the clean end of an answer is the file's. A length that a server gave may have been that of a
	 * compressed transfer, so a file may be longer than it said.
	 */
	#isAtEnd(): boolean {
		const { size } = this.#remote.version;
		if (this.#end !== undefined) return this.#position >= this.#end;
		if (size !== undefined && this.#position < size) return false;
		this.#remote.learnSize(this.#position);
		return true;
	}

	/** A failed connection: the next one goes on where it broke off, unless nothing helps. */
	async #interrupted(error: unknown): Promise<void> {
		const wasPaused = this.#connection?.wasPaused;
		await this.close();
		if (wasPaused && !this.#signal?.aborted) return;
		if (error instanceof RangeEndError && error.size === this.#position) {
			this.#remote.learnSize(this.#position);
			return;
		}
		if (error instanceof NetworkError && !(error instanceof TransientError)) throw error;
		await this.#remote.recover(error, this.#signal);
	}
}
