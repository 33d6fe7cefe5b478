// Checkpoints on the disk, in Node.

import { createReadStream } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidArgumentError } from "../errors.js";
import {
	type Checkpoint,
	type CheckpointFile,
	fileSet,
	isWeights,
	nameByContent,
	SIDE_FILES,
	shardNames,
} from "./checkpoint.js";
import { MAX_PIECE } from "./pieces.js";

async function pathFile(path: string): Promise<CheckpointFile> {
	const { size } = await stat(path);
	return {
		name: basename(path),
		size,
		async open() {
			const handle = await open(path);
			const pieces = createReadStream(path, { fd: handle, highWaterMark: MAX_PIECE });
			return { size, cachedBytes: size, pieces };
		},
	};
}

async function filesOf(directory: string): Promise<CheckpointFile[]> {
	const entries = await readdir(directory, { withFileTypes: true });
	const names = entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name);
	const wanted = names.filter((name) => SIDE_FILES.includes(name) || isWeights(name));
	return Promise.all(wanted.map((name) => pathFile(join(directory, name))));
}

/** The path that a `file:` URL names. */
function pathOfUrl(url: string): string {
	try {
		return fileURLToPath(url);
	} catch (cause) {
		const { message } = cause as Error;
		throw new InvalidArgumentError(`'${url}' names no file of this machine: ${message}. Give a path.`, {
			cause,
		});
	}
}

/** Opens a file or a folder; a safetensors file brings its folder's side files along. */
export async function openPath(source: string, signal: AbortSignal | undefined): Promise<Checkpoint> {
	const path = source.startsWith("file:") ? pathOfUrl(source) : source;
	try {
		if ((await stat(path)).isDirectory()) return fileSet(await filesOf(path));
		const file = await nameByContent(await pathFile(path), signal);
		if (/\.gguf$/i.test(file.name) && !shardNames(file.name)) return fileSet([file]);
		const siblings = (await filesOf(dirname(path))).filter((other) => other.name !== basename(path));
		return fileSet([...siblings, file], file.name);
	} catch (error) {
		const code = (error as NodeJS.ErrnoException).code;
		if (code === "ENOENT")
			throw new InvalidArgumentError(`There is no file or folder '${path}'.`, { cause: error });
		if (code === "EACCES") throw new InvalidArgumentError(`'${path}' may not be read.`, { cause: error });
		throw error;
	}
}
