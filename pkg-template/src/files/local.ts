// Checkpoints that the page holds: dropped files, blobs and bytes.

import { type Checkpoint, type CheckpointFile, fileSet, nameByContent } from "./checkpoint.js";
import { readBlob, split } from "./pieces.js";

function blobFile(name: string, blob: Blob): CheckpointFile {
	const { size } = blob;
	return { name, size, open: async () => ({ size, cachedBytes: size, pieces: readBlob(blob) }) };
}

/** Files that a person chose or dropped, or a single blob. */
export async function openFiles(
	files: { name: string; blob: Blob }[],
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	const all = files.map(({ name, blob }) => blobFile(name, blob));
	const [only] = all;
	return only && all.length === 1 ? fileSet([await nameByContent(only, signal)]) : fileSet(all);
}

/** The bytes of one file. */
export async function openBytes(bytes: Uint8Array, signal: AbortSignal | undefined): Promise<Checkpoint> {
	const size = bytes.length;
	const file = { name: "", size, open: async () => ({ size, cachedBytes: size, pieces: split([bytes]) }) };
	return fileSet([await nameByContent(file, signal)]);
}
