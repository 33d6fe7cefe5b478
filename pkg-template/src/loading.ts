// Streams a checkpoint's bytes into the wasm loader, reporting progress and stopping between two pieces.

import { CorruptFileError, throwIfAborted } from "./errors.js";
import type { Checkpoint, CheckpointFile } from "./files/checkpoint.js";
import { refusal } from "./files/checkpoint.js";
import { sniff } from "./files/sniff.js";
import type { LoadProgress } from "./types.js";
import type { WasmLoader } from "./wasm-api.js";
import { yieldToEventLoop } from "./yield.js";

/** The least time between two progress reports of one phase, in milliseconds. */
const REPORT_INTERVAL = 50;

/** Counts bytes and reports them, not too often. */
class ProgressMeter {
	#loaded = 0;
	#total: number | undefined;
	#reported = Number.NEGATIVE_INFINITY;
	readonly #report: ((progress: LoadProgress) => void) | undefined;

	constructor(report: ((progress: LoadProgress) => void) | undefined) {
		this.#report = report;
	}

	get loaded(): number {
		return this.#loaded;
	}

	/** Sets the total, from the sizes of everything that is left; one unknown size makes it unknown. */
	remaining(sizes: (number | undefined)[]): void {
		this.#total = sizes.reduce<number | undefined>(
			(total, size) => (total === undefined || size === undefined ? undefined : total + size),
			this.#loaded,
		);
	}

	advance(bytes: number, file: string): void {
		this.#loaded += bytes;
		const now = performance.now();
		if (now - this.#reported < REPORT_INTERVAL) return;
		this.#reported = now;
		this.enter("download", file);
	}

	enter(phase: LoadProgress["phase"], file?: string): void {
		// A server may have said less than it sent; a fraction above 1 would help nobody.
		const total = this.#total === undefined ? undefined : Math.max(this.#total, this.#loaded);
		const fraction = phase === "ready" ? 1 : total ? this.#loaded / total : undefined;
		this.#report?.({ phase, file, loadedBytes: this.#loaded, totalBytes: total, fraction });
	}
}

/** A small file that was read whole. */
type SideFile = Awaited<ReturnType<Checkpoint["sideFiles"]>>[number];

/** Pushes a side file. */
export function pushSideFile(loader: WasmLoader, { name, bytes }: SideFile): void {
	loader.beginFile(name, bytes.length);
	loader.push(bytes);
	loader.endFile();
}

/**
 * Pushes a file of weights, without ending it, piece by piece until `onPiece`, which is told each piece's
 * length, returns true.
 */
export async function pushWeights(
	loader: WasmLoader,
	file: CheckpointFile,
	signal: AbortSignal | undefined,
	onPiece: (bytes: number) => boolean,
): Promise<void> {
	const { size, pieces } = await file.open(signal);
	let isBegun = false;
	for await (const piece of pieces) {
		if (!isBegun) {
			const format = sniff(piece);
			if (format === "html" || format === "git-lfs") throw refusal(format, file.name);
			loader.beginFile(file.name, size);
			isBegun = true;
		}
		loader.push(piece);
		if (onPiece(piece.length)) return;
		await yieldToEventLoop();
		throwIfAborted(signal);
	}
	if (!isBegun) throw new CorruptFileError(`${file.name} is empty: get the file again.`);
}

/**
 * Reads a whole checkpoint into the loader.
 *
 * @returns the number of bytes read
 */
export async function feedCheckpoint(
	loader: WasmLoader,
	checkpoint: Checkpoint,
	signal: AbortSignal | undefined,
	onProgress: ((progress: LoadProgress) => void) | undefined,
): Promise<number> {
	const meter = new ProgressMeter(onProgress);
	meter.enter("download");
	for (const file of await checkpoint.sideFiles(signal)) {
		throwIfAborted(signal);
		pushSideFile(loader, file);
		meter.advance(file.bytes.length, file.name);
	}
	const weights = await checkpoint.weights(loader.shards(), signal);
	const remaining = new Map(weights.map((file) => [file, file.size]));
	for (const file of weights) {
		const measured: CheckpointFile = {
			...file,
			async open(signal) {
				const stream = await file.open(signal);
				remaining.set(file, stream.size ?? file.size);
				meter.remaining([...remaining.values()]);
				return stream;
			},
		};
		await pushWeights(loader, measured, signal, (bytes) => {
			meter.advance(bytes, file.name);
			return false;
		});
		loader.endFile();
		remaining.delete(file);
	}
	meter.enter("load");
	await yieldToEventLoop();
	throwIfAborted(signal);
	return meter.loaded;
}
