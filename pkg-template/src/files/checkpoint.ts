// What a checkpoint consists of, wherever it lies: small side files and weights, each a stream of bytes.

import {
	CorruptFileError,
	InvalidArgumentError,
	type SternaError,
	UnsupportedFormatError,
} from "../errors.js";
import { type Pieces, peek, readAll } from "./pieces.js";
import { SNIFF_BYTES, sniff } from "./sniff.js";

/** A file that was opened. Its pieces have to be iterated over, and a stream that is left early is closed. */
export interface OpenedFile {
	/** Bytes, where the place tells for sure. */
	size?: number;
	/** Bytes, where the place tells at all. */
	likelySize?: number;
	/** Bytes that need not come over the network. */
	cachedBytes: number;
	pieces: Pieces;
}

/** One file. It can be opened again. */
export interface CheckpointFile {
	/** The bare name. */
	readonly name: string;
	/** Bytes, where known before opening. */
	readonly size?: number;
	open(signal: AbortSignal | undefined): Promise<OpenedFile>;
	/** Lets go of what was opened to look at it. */
	close?(): Promise<void>;
	/** Forgets a stored copy, which turned out not to be what it should be. */
	discard?(): Promise<void>;
	/** How many bytes need not come over the network; all of them where this is left out. */
	look?(): Promise<{ stored: number; size?: number }>;
}

/** A small file that was read whole. */
export interface SideFile {
	name: string;
	bytes: Uint8Array;
	/** How many of the bytes did not come over the network. */
	cachedBytes: number;
	/** As {@link CheckpointFile.discard}. */
	discard?(): Promise<void>;
}

/** A checkpoint's files. */
export interface Checkpoint {
	/** Configuration, tokenizer and the like, in the order in which the loader wants them. */
	sideFiles(signal: AbortSignal | undefined): Promise<SideFile[]>;
	/** The weights; `shards` are the names that an index listed, if there is one. */
	weights(shards: string[], signal: AbortSignal | undefined): Promise<CheckpointFile[]>;
	/** Lets go of what was opened and not read. */
	close?(): Promise<void>;
}

/** The index of a sharded safetensors checkpoint. */
export const INDEX_FILE = "model.safetensors.index.json";

/** The side files that the loader knows, in the order in which it wants them. */
export const SIDE_FILES = [
	"config.json",
	"generation_config.json",
	"tokenizer.json",
	"tokenizer_config.json",
	"special_tokens_map.json",
	"chat_template.jinja",
	INDEX_FILE,
];

/** No tokenizer or configuration is larger; what is, is not read into memory. */
const MAX_SIDE_FILE = 256 << 20;

/** `model-00002-of-00005.safetensors` (or `.gguf`) → the names of all five; `undefined` for other names. */
export function shardNames(name: string): string[] | undefined {
	const [, stem, digits, count, type] = /^(.*)-(\d{5})-of-(\d{5})\.(safetensors|gguf)$/.exec(name) ?? [];
	if (!digits || Number(count) > 10_000) return undefined;
	return Array.from(
		{ length: Number(count) },
		(_, i) => `${stem}-${String(i + 1).padStart(5, "0")}-of-${count}.${type}`,
	);
}

/** Whether a name is that of weights. */
export const isWeights = (name: string) => /\.(gguf|safetensors)$/i.test(name);

/** Reads a side file whole. */
export async function readSideFile(file: CheckpointFile, signal: AbortSignal | undefined): Promise<SideFile> {
	const { pieces, cachedBytes } = await file.open(signal);
	const bytes = await readAll(pieces, MAX_SIDE_FILE);
	if (!bytes)
		throw new CorruptFileError(`${file.name} has over 256 MiB; a file of that name should be small.`);
	return { name: file.name, bytes, cachedBytes, discard: () => file.discard?.() ?? Promise.resolve() };
}

/** The list of names as a person reads it, shortened. */
function listed(names: string[]): string {
	const shown = names.slice(0, 8).join(", ");
	return names.length > 8 ? `${shown} and ${names.length - 8} more` : shown;
}

/** The weights among files whose names are all known: the listed shards, or the one weights file. */
function pickWeights(
	files: CheckpointFile[],
	shards: string[],
	chosen: string | undefined,
): CheckpointFile[] {
	const byName = new Map(files.map((file) => [file.name, file]));
	const candidates = files.filter((file) => isWeights(file.name));
	const wanted = (chosen && (shardNames(chosen) ?? [chosen])) || (shards.length > 0 ? shards : undefined);
	if (wanted) {
		const missing = wanted.filter((name) => !byName.has(name));
		if (missing.length > 0) {
			throw new InvalidArgumentError(`The model has more files: also give ${listed(missing)}.`);
		}
		return wanted.map((name) => byName.get(name)!);
	}
	const [first] = candidates;
	if (!first) {
		throw new InvalidArgumentError(
			`There are no weights among the files (${listed(files.map((file) => file.name))}): give a .gguf or a .safetensors file.`,
		);
	}
	const all = shardNames(first.name);
	if (all) return pickWeights(files, all, undefined);
	if (candidates.length > 1) {
		throw new InvalidArgumentError(
			`There is more than one model among the files (${listed(candidates.map((file) => file.name))}): give one of them.`,
		);
	}
	return [first];
}

/** A checkpoint whose files are all at hand: dropped ones, or those of a folder. `chosen` names the weights. */
export function fileSet(files: CheckpointFile[], chosen?: string): Checkpoint {
	return {
		async sideFiles(signal) {
			const found = SIDE_FILES.flatMap((name) => files.find((file) => file.name === name) ?? []);
			const wanted = chosen && shardNames(chosen) ? found.filter((file) => file.name !== INDEX_FILE) : found;
			return Promise.all(wanted.map((file) => readSideFile(file, signal)));
		},
		async weights(shards) {
			return pickWeights(files, shards, chosen);
		},
		async close() {
			for (const file of files) await file.close?.();
		},
	};
}

/** What tells a format takes at least this much. */
const MIN_BYTES = 8;

/** A file without a telling name: its first bytes give the extension. */
export async function nameByContent(
	file: CheckpointFile,
	signal: AbortSignal | undefined,
): Promise<CheckpointFile> {
	if (isWeights(file.name)) return file;
	const { pieces } = await file.open(signal);
	const { head, close } = await peek(pieces, SNIFF_BYTES);
	await close();
	const format = sniff(head);
	if (format === "gguf" || format === "safetensors") return { ...file, name: `model.${format}` };
	if (format === "unknown" && head.length < MIN_BYTES) {
		throw new CorruptFileError(
			`${file.name || "The file"} has ${head.length} bytes, too few for a model: get the file again.`,
		);
	}
	throw refusal(format, file.name || "The file");
}

/** The error for a file that is not a checkpoint. */
export function refusal(format: ReturnType<typeof sniff>, name: string): SternaError {
	if (format === "git-lfs") {
		return new UnsupportedFormatError(
			`${name} is a Git LFS pointer, not the model itself: fetch the real file with 'git lfs pull'.`,
		);
	}
	if (format === "html") return new UnsupportedFormatError(`${name} is an HTML page, not a model.`);
	return new CorruptFileError(
		`${name} is neither a GGUF nor a safetensors file: it is another file, or damaged.`,
	);
}
