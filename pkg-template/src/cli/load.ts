// Loads the model of a command, with progress on stderr.

import type { Model } from "../model.js";
import { loadModel } from "../node.js";
import type { LoadOptions, LoadProgress } from "../types.js";
import { formatBytes } from "./format.js";

/** The options that every command with a model takes. */
export interface LoadingOptions {
	context?: number;
	kv?: LoadOptions["kvCache"];
	activations?: LoadOptions["activations"];
	embedding?: LoadOptions["embedding"];
	i2sLayout?: LoadOptions["i2sLayout"];
	device?: LoadOptions["device"];
	threads?: number;
	quiet?: boolean;
}

/** Draws a line that is overwritten on a terminal; elsewhere it says only what is being loaded. */
function progressLine(model: string): (progress: LoadProgress) => void {
	const { stderr } = process;
	if (!stderr.isTTY) {
		stderr.write(`loading ${model}\n`);
		return () => undefined;
	}
	return ({ phase, file, loadedBytes, totalBytes, fraction }) => {
		const percent = fraction === undefined ? "" : `${Math.floor(fraction * 100)} % `;
		const total = totalBytes === undefined ? "" : ` of ${formatBytes(totalBytes)}`;
		const line =
			phase === "ready" ? "" : `${percent}${phase} ${file ?? ""} ${formatBytes(loadedBytes)}${total}`;
		stderr.write(`\r\x1b[K${line.slice(0, (stderr.columns || 80) - 1)}`);
	};
}

/** Loads a command's model. */
export async function loadForCommand(
	source: string,
	options: LoadingOptions,
	signal: AbortSignal | undefined,
): Promise<Model> {
	const onProgress = options.quiet ? undefined : progressLine(source);
	try {
		return await loadModel(source, {
			contextLength: options.context,
			kvCache: options.kv,
			activations: options.activations,
			embedding: options.embedding,
			i2sLayout: options.i2sLayout,
			device: options.device,
			threads: options.threads,
			onProgress,
			signal,
		});
	} catch (error) {
		if (onProgress && process.stderr.isTTY) process.stderr.write("\r\x1b[K");
		throw error;
	}
}
