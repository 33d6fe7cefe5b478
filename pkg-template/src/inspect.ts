// What a checkpoint is, from its headers: the weights themselves are not read.

import { toSternaError } from "./errors.js";
import { openSource } from "./files/open.js";
import type { SourceSpec } from "./files/source.js";
import { feedHeaders } from "./loading.js";
import type { Platform } from "./local-engine.js";
import type { InspectReport, LoaderOptions } from "./wasm-api.js";

/** Reads a checkpoint's headers. */
export async function inspectModel(
	platform: Platform,
	source: SourceSpec,
	options: LoaderOptions,
	signal: AbortSignal | undefined,
): Promise<InspectReport> {
	try {
		const { api } = await platform.instantiate(undefined);
		const checkpoint = await openSource(source, platform, signal);
		const loader = new api.Loader(options);
		try {
			await feedHeaders(loader, checkpoint, signal);
			return loader.inspect();
		} finally {
			loader.free();
		}
	} catch (error) {
		throw toSternaError(error);
	}
}
