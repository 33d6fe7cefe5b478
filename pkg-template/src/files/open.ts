// Opens a described source, whatever its kind.

import { InvalidArgumentError } from "../errors.js";
import type { Checkpoint } from "./checkpoint.js";
import { openBytes, openFiles } from "./local.js";
import { openUrl } from "./remote.js";
import type { SourceSpec } from "./source.js";

/** What opening a source needs from outside. */
export interface OpenContext {
	/** Fetches URLs. */
	fetch: typeof fetch;
	/** Opens a path, where there is a file system. */
	openPath?: (path: string, signal: AbortSignal | undefined) => Promise<Checkpoint>;
}

/** Opens a source. */
export async function openSource(
	spec: SourceSpec,
	context: OpenContext,
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	switch (spec.kind) {
		case "url":
			return openUrl(spec.url, context.fetch, signal);
		case "files":
			return openFiles(spec.files, signal);
		case "bytes":
			return openBytes(spec.bytes, signal);
		case "path":
			if (context.openPath) return context.openPath(spec.path, signal);
			throw new InvalidArgumentError(`'${spec.path}' is a path; a browser can only open URLs and files.`);
	}
}
