// Opens a described source, whatever its kind.

import { InvalidArgumentError } from "../errors.js";
import type { Access, AccessContext } from "./access.js";
import type { Checkpoint } from "./checkpoint.js";
import { openHub } from "./hub.js";
import { openBytes, openFiles } from "./local.js";
import { openUrl, openUrls } from "./remote.js";
import type { SourceSpec } from "./source.js";

/** What opening a source needs from outside. */
export interface OpenContext extends AccessContext {
	/** Opens a path, where there is a file system. */
	openPath?: (path: string, signal: AbortSignal | undefined) => Promise<Checkpoint>;
}

async function openLocal(
	spec: Extract<SourceSpec, { kind: "files" | "bytes" | "path" }>,
	{ openPath }: OpenContext,
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	switch (spec.kind) {
		case "files":
			return openFiles(spec.files, signal);
		case "bytes":
			return openBytes(spec.bytes, signal);
		case "path":
			if (openPath) return openPath(spec.path, signal);
			throw new InvalidArgumentError(`'${spec.path}' is a path; a browser can only open URLs and files.`);
	}
}

/** Opens a source. */
export async function openSource(
	spec: SourceSpec,
	context: OpenContext,
	access: Access,
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	switch (spec.kind) {
		case "url":
			return access.checkNames(await openUrl(spec.urls, access, signal));
		case "parts":
			return access.checkNames(openUrls(spec.urls, access));
		case "hub":
			return access.checkNames(await openHub(spec, access, signal));
		default:
			return access.checkNames(access.checkLocal(await openLocal(spec, context, signal)));
	}
}
