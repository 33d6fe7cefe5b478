// Streams a checkpoint's bytes into the wasm loader, reporting progress and stopping between two pieces.

import { CorruptFileError, throwIfAborted, toSternaError } from "./errors.js";
import { type Checkpoint, type CheckpointFile, refusal, type SideFile } from "./files/checkpoint.js";
import { sniff } from "./files/sniff.js";
import type { ProgressMeter } from "./progress.js";
import type { WasmLoader } from "./wasm-api.js";
import { Turns, yieldToEventLoop } from "./yield.js";

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
	onPiece: (bytes: number) => boolean | Promise<boolean>,
): Promise<void> {
	const { size, pieces } = await file.open(signal);
	let isBegun = false;
	const turns = new Turns();
	for await (const piece of pieces) {
		if (!isBegun) {
			const format = sniff(piece);
			if (format === "html" || format === "git-lfs") throw refusal(format, file.name);
			loader.beginFile(file.name, size);
			isBegun = true;
		}
		loader.push(piece);
		await loader.catchUp();
		if (await onPiece(piece.length)) return;
		await turns.take();
		throwIfAborted(signal);
	}
	if (!isBegun) throw new CorruptFileError(`${file.name} is empty: get the file again.`);
}

/** Does something with a file; when the file turns out to be damaged, its stored copy is not used again. */
async function reading(
	file: Pick<CheckpointFile, "discard">,
	work: () => void | Promise<void>,
): Promise<void> {
	try {
		await work();
	} catch (error) {
		if (toSternaError(error).code === "corrupt_file") await file.discard?.().catch(() => undefined);
		throw error;
	}
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
	meter: ProgressMeter,
): Promise<number> {
	for (const file of await checkpoint.sideFiles(signal)) {
		throwIfAborted(signal);
		await reading(file, () => pushSideFile(loader, file));
		meter.addCached(file.cachedBytes);
		meter.advance(file.bytes.length);
	}
	const weights = await checkpoint.weights(loader.shards(), signal);
	const remaining = new Map(weights.map((file) => [file, file.size]));
	for (const file of weights) {
		const measured: CheckpointFile = {
			name: file.name,
			async open(signal) {
				const opened = await file.open(signal);
				const size = opened.size ?? opened.likelySize ?? file.size;
				remaining.set(file, size);
				meter.remaining([...remaining.values()]);
				meter.addCached(opened.cachedBytes);
				meter.enter(opened.cachedBytes === size ? "read" : "download", file.name);
				return opened;
			},
		};
		await reading(file, async () => {
			await pushWeights(loader, measured, signal, async (bytes) => {
				meter.advance(bytes);
				await meter.gate?.opened(signal);
				return false;
			});
			loader.endFile();
		});
		remaining.delete(file);
	}
	meter.enter("load");
	await yieldToEventLoop();
	throwIfAborted(signal);
	return meter.loaded;
}
