// Loads the model of a command, with progress on stderr.

import { availableParallelism } from "node:os";
import type { Model } from "../model.js";
import { loadModel } from "../node.js";
import { threadCount } from "../threads/count.js";
import type { LoadOptions, LoadProgress } from "../types.js";
import { formatBytes } from "./format.js";
import { note, progressLine } from "./output.js";

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

/** How far a load is, in one line. */
function describe({ phase, file, loadedBytes, totalBytes, fraction }: LoadProgress): string {
	if (phase === "ready") return "";
	const percent = fraction === undefined ? "" : `${Math.floor(fraction * 100)} % `;
	const total = totalBytes === undefined ? "" : ` of ${formatBytes(totalBytes)}`;
	return `${percent}${phase} ${file ?? ""} ${formatBytes(loadedBytes)}${total}`;
}

/** Loads a command's model. */
export async function loadForCommand(
	source: string,
	options: LoadingOptions,
	signal: AbortSignal | undefined,
): Promise<Model> {
	const line = progressLine(options.quiet);
	// Where no line can be overwritten, say once what is being loaded.
	if (!process.stderr.isTTY) note(`loading ${source}`, options.quiet);
	try {
		return await loadModel(source, {
			contextLength: options.context,
			kvCache: options.kv,
			activations: options.activations,
			embedding: options.embedding,
			i2sLayout: options.i2sLayout,
			device: options.device,
			threads: options.threads ?? threadCount("auto", availableParallelism()),
			onProgress: (progress) => line.show(describe(progress)),
			signal,
		});
	} catch (error) {
		line.clear();
		throw error;
	}
}
