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
	#total: number | undefined = 0;
	#reported = Number.NEGATIVE_INFINITY;
	readonly #report: ((progress: LoadProgress) => void) | undefined;

	constructor(report: ((progress: LoadProgress) => void) | undefined) {
		this.#report = report;
	}

	get loaded(): number {
		return this.#loaded;
	}

	/** Adds to the total; one unknown size makes the total unknown. */
	expect(size: number | undefined): void {
		this.#total = size === undefined || this.#total === undefined ? undefined : this.#total + size;
	}

	/** Takes an unknown total for known: the sizes of everything that is left. */
	restart(sizes: (number | undefined)[]): void {
		this.#total = this.#loaded;
		for (const size of sizes) this.expect(size);
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

/** Pushes one file of weights; `enough` may end it early. Returns whether it was read to its end. */
async function pushFile(
	loader: WasmLoader,
	file: CheckpointFile,
	signal: AbortSignal | undefined,
	onBytes: (bytes: number) => void,
	enough: () => boolean,
): Promise<boolean> {
	const { size, pieces } = await file.open(signal);
	let begun = false;
	for await (const piece of pieces) {
		if (!begun) {
			const format = sniff(piece);
			if (format === "html" || format === "git-lfs") throw refusal(format, file.name);
			loader.beginFile(file.name, size);
			begun = true;
		}
		loader.push(piece);
		onBytes(piece.length);
		if (enough()) return false;
		await yieldToEventLoop();
		throwIfAborted(signal);
	}
	if (!begun) throw new CorruptFileError(`${file.name} is empty: get the file again.`);
	return true;
}

/** Pushes the side files and opens the list of weights. */
async function begin(loader: WasmLoader, checkpoint: Checkpoint, meter: ProgressMeter, signal?: AbortSignal) {
	meter.enter("download");
	for (const { name, bytes } of await checkpoint.sideFiles(signal)) {
		throwIfAborted(signal);
		loader.beginFile(name, bytes.length);
		loader.push(bytes);
		loader.endFile();
		meter.expect(bytes.length);
		meter.advance(bytes.length, name);
	}
	return checkpoint.weights(loader.shards(), signal);
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
	const weights = await begin(loader, checkpoint, meter, signal);
	const sizes = new Map(weights.map((file) => [file, file.size]));
	for (const file of weights) {
		const opened: CheckpointFile = {
			...file,
			async open(signal) {
				const stream = await file.open(signal);
				sizes.set(file, stream.size ?? file.size);
				meter.restart([...sizes.values()]);
				return stream;
			},
		};
		await pushFile(
			loader,
			opened,
			signal,
			(bytes) => meter.advance(bytes, file.name),
			() => false,
		);
		loader.endFile();
		sizes.delete(file);
	}
	meter.enter("load");
	await yieldToEventLoop();
	throwIfAborted(signal);
	return meter.loaded;
}

/** Reads only the headers of a checkpoint's weights into the loader. */
export async function feedHeaders(
	loader: WasmLoader,
	checkpoint: Checkpoint,
	signal: AbortSignal | undefined,
): Promise<void> {
	const weights = await begin(loader, checkpoint, new ProgressMeter(undefined), signal);
	for (const file of weights) {
		const isWhole = await pushFile(
			loader,
			file,
			signal,
			() => undefined,
			() => loader.headerReady(),
		);
		if (isWhole) loader.endFile();
	}
}
