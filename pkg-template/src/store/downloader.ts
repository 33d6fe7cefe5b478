// Fetches the missing blocks of a stored file, over one connection, or over several where that is faster.

import type { Remote } from "../net/remote.js";
import { Transfer } from "../net/transfer.js";
import { BLOCK, type Entry } from "./entry.js";

/** What the storage failed with: the download could go on without it. */
export class StorageFailure extends Error {
	constructor(cause: unknown) {
		super("The storage failed.", { cause });
	}
}

/** A file is worth further connections while at least this much is missing. */
const WORTH_SPLITTING = 32 * BLOCK;
/** How long the speed of a number of connections is measured, in milliseconds. */
const MEASURE_INTERVAL = 1500;
/** What a further connection has to bring. */
const WORTHWHILE_GAIN = 1.15;

/** One connection: stores blocks from `next` on until it meets one that is stored or another lane's. */
interface Lane {
	next: number;
	isExtra: boolean;
	controller: AbortController;
}

export class Downloader {
	readonly #entry: Entry;
	readonly #remote: Remote;
	readonly #signal: AbortSignal | undefined;
	readonly #onBlock: () => void;
	readonly #lanes = new Set<Lane>();
	readonly #forward = () => this.#stopLanes();
	#waiting: (() => void)[] = [];
	#failure: unknown;
	#received = 0;
	#mayGrow: boolean;
	#timer: ReturnType<typeof setInterval> | undefined;

	/** @param onBlock is called after each block that was stored */
	constructor(entry: Entry, remote: Remote, signal: AbortSignal | undefined, onBlock: () => void) {
		this.#entry = entry;
		this.#remote = remote;
		this.#signal = signal;
		this.#onBlock = onBlock;
		this.#mayGrow = remote.network.patience.connections > 1;
		signal?.addEventListener("abort", this.#forward, { once: true });
	}

	/** Goes on with a transfer that begins at a block, and that the controller aborts. */
	start(transfer: Transfer, index: number, controller: AbortController): void {
		this.#run(this.#addLane(index, false, controller), transfer);
		if (this.#mayGrow) this.#measure();
	}

	/**
	 * Resolves when a block is stored, or with `false` when the file ends before it.
	 *
	 * @throws the network's errors, AbortedError, {@link StorageFailure}
	 */
	async fetch(index: number): Promise<boolean> {
		for (;;) {
			if (this.#entry.has(index)) return true;
			if (this.#failure) throw this.#failure;
			const { size } = this.#remote.version;
			if (size !== undefined && index * BLOCK >= size) return false;
			if (![...this.#lanes].some((lane) => lane.next <= index)) {
				this.#run(this.#addLane(index, false), undefined);
			}
			await new Promise<void>((resolve) => this.#waiting.push(resolve));
		}
	}

	/** Ends all connections. */
	stop(): void {
		this.#signal?.removeEventListener("abort", this.#forward);
		this.#stopLanes();
	}

	#stopLanes(): void {
		clearInterval(this.#timer);
		for (const { controller } of this.#lanes) controller.abort(this.#signal?.reason);
	}

	#addLane(next: number, isExtra: boolean, controller = new AbortController()): Lane {
		const lane = { next, isExtra, controller };
		if (this.#signal?.aborted) lane.controller.abort(this.#signal.reason);
		this.#lanes.add(lane);
		return lane;
	}

	/** Runs a lane to its end. A further connection that fails is only one fewer. */
	async #run(lane: Lane, begun: Transfer | undefined): Promise<void> {
		try {
			const remote = lane.isExtra ? this.#remote.further() : this.#remote;
			const { signal } = lane.controller;
			const stored = this.#entry.nextStored(lane.next);
			const span = { start: lane.next * BLOCK, end: stored === undefined ? undefined : stored * BLOCK };
			const transfer = begun ?? (await Transfer.open(remote, span, signal));
			if (lane.isExtra && remote.hasRanges === false) {
				this.#mayGrow = false;
				await transfer.close();
				return;
			}
			await this.#store(lane, transfer);
		} catch (error) {
			this.#mayGrow = false;
			if (!lane.isExtra || error instanceof StorageFailure) this.#failure ??= error;
		} finally {
			this.#lanes.delete(lane);
			this.#notify();
		}
	}

	/** Cuts a transfer into blocks and stores them. */
	async #store(lane: Lane, transfer: Transfer): Promise<void> {
		const block = new Uint8Array(BLOCK);
		let filled = 0;
		const store = async () => {
			await this.#entry.write(lane.next, block.subarray(0, filled)).catch((error) => {
				throw new StorageFailure(error);
			});
			this.#received += filled;
			filled = 0;
			lane.next += 1;
			this.#onBlock();
			this.#notify();
		};
		for await (const piece of transfer.pieces()) {
			for (let taken = 0; taken < piece.length; ) {
				const part = piece.subarray(taken, taken + BLOCK - filled);
				block.set(part, filled);
				filled += part.length;
				taken += part.length;
				if (filled < BLOCK) continue;
				await store();
				if (this.#isTaken(lane)) return;
			}
		}
		if (filled > 0) await store();
	}

	/** Whether the lane's next block is stored or another lane's. */
	#isTaken(lane: Lane): boolean {
		return (
			this.#entry.has(lane.next) ||
			[...this.#lanes].some((other) => other !== lane && other.next === lane.next)
		);
	}

	#notify(): void {
		const waiting = this.#waiting;
		this.#waiting = [];
		for (const wake of waiting) wake();
	}

	/** Adds connections one by one for as long as each makes the download faster. */
	#measure(): void {
		let speed = 0;
		let seen = this.#received;
		this.#timer = setInterval(() => {
			const now = this.#received - seen;
			seen = this.#received;
			if (this.#remote.network.gate.isPaused) return;
			const isFaster = speed === 0 || now > speed * WORTHWHILE_GAIN;
			speed = now;
			if (!this.#mayGrow || !isFaster || this.#lanes.size >= this.#remote.network.patience.connections) {
				clearInterval(this.#timer);
				return;
			}
			const index = this.#splitPoint();
			if (index !== undefined && now > 0) this.#run(this.#addLane(index, true), undefined);
		}, MEASURE_INTERVAL);
	}

	/** The middle of the largest part that one lane has before it. */
	#splitPoint(): number | undefined {
		const { size } = this.#remote.version;
		if (size === undefined || this.#remote.hasRanges === false) return undefined;
		const count = Math.ceil(size / BLOCK);
		let best: { start: number; length: number } | undefined;
		for (const { next } of this.#lanes) {
			let end = next;
			const others = new Set([...this.#lanes].map((lane) => lane.next).filter((other) => other !== next));
			while (end < count && !this.#entry.has(end) && !others.has(end)) end += 1;
			if (!best || end - next > best.length) best = { start: next, length: end - next };
		}
		if (!best || best.length * BLOCK < WORTH_SPLITTING) return undefined;
		return best.start + Math.floor(best.length / 2);
	}
}
