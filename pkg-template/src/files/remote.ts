// Checkpoints behind a URL: a single file, or a folder as on Hugging Face.

import { NetworkError, throwIfAborted } from "../errors.js";
import { isAbsent, PageError } from "../net/http-errors.js";
import { requestHead } from "../net/request.js";
import type { Access } from "./access.js";
import {
	type Checkpoint,
	type CheckpointFile,
	fileSet,
	INDEX_FILE,
	isWeights,
	type OpenedFile,
	readSideFile,
	refusal,
	SIDE_FILES,
	type SideFile,
	shardNames,
} from "./checkpoint.js";
import { peek } from "./pieces.js";
import { SNIFF_BYTES, sniff } from "./sniff.js";

/** The last part of a URL's path. */
export function fileName(url: string): string {
	const part = new URL(url).pathname.split("/").pop() ?? "";
	try {
		return decodeURIComponent(part);
	} catch {
		// Not percent-encoded after all, as in a `data:` URL.
		return part;
	}
}

/** A file that was opened to look at it: the first reader takes it over, later ones open it anew. */
function begunFile(
	name: string,
	begun: OpenedFile,
	file: CheckpointFile,
	end: () => Promise<void>,
): CheckpointFile {
	let first: OpenedFile | undefined = begun;
	return {
		name,
		size: begun.size,
		discard: async () => file.discard?.(),
		async close() {
			if (first) await end();
			first = undefined;
		},
		async open(signal) {
			const taken = first ?? (await file.open(signal));
			first = undefined;
			return taken;
		},
	};
}

/** The error for the address of a web page, such as a model's on a site. */
function pageRefusal(url: string, { status }: NetworkError): NetworkError {
	return new NetworkError(
		`${url} is a web page, not a model. Give the address of a .gguf or .safetensors file itself, or of a folder that has config.json; a model on Hugging Face is written hf:owner/repo.`,
		url,
		{ status },
	);
}

/** A folder whose own address gave a page: without a config.json, the page is what was given. */
function explainingPage(found: Checkpoint, url: string, page: PageError): Checkpoint {
	return {
		sideFiles: (signal) =>
			found.sideFiles(signal).catch((error) => {
				throw isAbsent(error) ? pageRefusal(url, page) : error;
			}),
		weights: (shards, signal) => found.weights(shards, signal),
	};
}

/** A folder's file beside `base`, keeping the query, which may hold a signature. */
function sibling(base: URL, name: string): string {
	const url = new URL(encodeURIComponent(name), base);
	url.search = base.search;
	return url.href;
}

/** What tokenizer_config.json says itself, so that other files need not be asked for. */
function tokenizerConfig(files: SideFile[]): { hasTemplate: boolean; hasTokens: boolean } {
	const file = files.find(({ name }) => name === "tokenizer_config.json");
	try {
		const config = JSON.parse(new TextDecoder().decode(file?.bytes));
		return {
			hasTemplate: Boolean(config.chat_template),
			hasTokens: Boolean(config.bos_token && config.eos_token),
		};
	} catch {
		// Absent, or damaged, which the loader will tell.
		return { hasTemplate: false, hasTokens: false };
	}
}

/** A folder behind one address or several. */
class Folder implements Checkpoint {
	readonly #bases: URL[];
	readonly #access: Access;
	readonly #chosen: string | undefined;

	/** @param chosen names the weights, else the index or the usual name does */
	constructor(bases: URL[], access: Access, chosen?: string) {
		this.#bases = bases;
		this.#access = access;
		this.#chosen = chosen;
	}

	/**
	 * The side files that are there. What a model may do without is asked for only where nothing else tells that it
	 * is not needed: browsers report each missing file in their console.
	 */
	async sideFiles(signal: AbortSignal | undefined): Promise<SideFile[]> {
		const read = async (names: string[]) => {
			const files = await Promise.all(names.map((name) => this.#optional(name, signal)));
			return files.filter((file) => file !== undefined);
		};
		const [isIndexed, config, found] = await Promise.all([
			this.#isIndexed(signal),
			this.#config(signal),
			read(["generation_config.json", "tokenizer.json", "tokenizer_config.json"]),
		]);
		const { hasTemplate, hasTokens } = tokenizerConfig(found);
		const further = await read([
			...(hasTokens ? [] : ["special_tokens_map.json"]),
			...(hasTemplate ? [] : ["chat_template.jinja"]),
			...(isIndexed ? [INDEX_FILE] : []),
		]);
		const all = [config, ...found, ...further];
		return SIDE_FILES.flatMap((name) => all.find((file) => file.name === name) ?? []);
	}

	async weights(shards: string[], signal: AbortSignal | undefined): Promise<CheckpointFile[]> {
		const names = this.#chosen === undefined ? shards : (shardNames(this.#chosen) ?? [this.#chosen]);
		if (names.length < 2) return [this.#file(names[0] ?? "model.safetensors")];
		return Promise.all(
			names.map((name) => sized(this.#file(name), this.#urls(name)[0]!, this.#access, signal)),
		);
	}

	#urls(name: string): string[] {
		return this.#bases.map((base) => sibling(base, name));
	}

	#file(name: string): CheckpointFile {
		return this.#access.file({ name, urls: this.#urls(name) });
	}

	/** Whether the weights are what an index lists: certainly not where the usual single file is. */
	async #isIndexed(signal: AbortSignal | undefined): Promise<boolean> {
		if (this.#chosen !== undefined) return false;
		const single = "model.safetensors";
		if (((await this.#file(single).look?.())?.stored ?? 0) > 0) return false;
		try {
			await requestHead(this.#urls(single)[0]!, this.#access.network, signal);
			return false;
		} catch {
			throwIfAborted(signal);
			return true;
		}
	}

	async #config(signal: AbortSignal | undefined): Promise<SideFile> {
		try {
			return await readSideFile(this.#file("config.json"), signal);
		} catch (error) {
			if (!isAbsent(error)) throw error;
			const { href } = this.#bases[0]!;
			if (error instanceof PageError) throw pageRefusal(href, error);
			const { message, status } = error as NetworkError;
			throw new NetworkError(
				`There is no config.json in ${href}, so this is not the folder of a model. Give the address of a folder that has one, or of a .gguf file. (${message})`,
				href,
				{ status },
			);
		}
	}

	#optional(name: string, signal: AbortSignal | undefined): Promise<SideFile | undefined> {
		return readSideFile(this.#file(name), signal).catch((error) => {
			if (isAbsent(error)) return undefined;
			throw error;
		});
	}
}

/** A file with its size, for the total of progress; a server that does not answer HEAD only costs that. */
async function sized(
	file: CheckpointFile,
	url: string,
	access: Access,
	signal: AbortSignal | undefined,
): Promise<CheckpointFile> {
	const { size: stored } = (await file.look?.()) ?? {};
	let size = stored;
	try {
		size ??= (await requestHead(url, access.network, signal)).size;
	} catch {
		throwIfAborted(signal);
	}
	return {
		name: file.name,
		size,
		open: (signal) => file.open(signal),
		look: () => file.look!(),
		discard: async () => file.discard?.(),
	};
}

const folderOf = (url: string) => new URL(url.endsWith("/") ? url : url.replace(/([?#].*)?$/, "/$1"));

/** Looks what is behind URLs whose name does not tell: a file, or else a folder. */
async function probe(
	urls: string[],
	name: string,
	access: Access,
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	const file = access.file({ name, urls });
	let opened: OpenedFile;
	try {
		opened = await file.open(signal);
	} catch (error) {
		if (!isAbsent(error)) throw error;
		// A page may also be what a server of a folder, or of a single-page app, gives: config.json tells.
		const found = new Folder(urls.map(folderOf), access);
		return error instanceof PageError ? explainingPage(found, urls[0]!, error) : found;
	}
	const { head, pieces, close } = await peek(opened.pieces, SNIFF_BYTES);
	const format = sniff(head);
	if (format === "gguf" || format === "safetensors") {
		return fileSet([begunFile(`model.${format}`, { ...opened, pieces }, file, close)]);
	}
	await close();
	throw refusal(format, urls[0]!);
}

/** The checkpoint behind an absolute URL, or several of the same. */
export async function openUrl(
	urls: string[],
	access: Access,
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	const name = fileName(urls[0]!);
	const bases = () => urls.map((url) => new URL(".", url));
	if (/\.gguf$/i.test(name)) {
		const parts = shardNames(name);
		return parts ? ggufParts(parts, urls, access) : fileSet([access.file({ name, urls })]);
	}
	if (/\.safetensors$/i.test(name)) return new Folder(bases(), access, name);
	if (name === INDEX_FILE || name === "config.json") return new Folder(bases(), access);
	if (name === "")
		return new Folder(
			urls.map((url) => new URL(url)),
			access,
		);
	return probe(urls, name, access, signal);
}

/** The parts of a split GGUF file, of which any was named. */
function ggufParts(parts: string[], urls: string[], access: Access): Checkpoint {
	const file = (name: string) => ({ name, urls: urls.map((url) => sibling(new URL(url), name)) });
	return {
		sideFiles: async () => [],
		weights: (_, signal) =>
			Promise.all(parts.map((name) => sized(access.file(file(name)), file(name).urls[0]!, access, signal))),
	};
}

/** The checkpoint whose files the URLs are, one each. */
export function openUrls(urls: string[], access: Access): Checkpoint {
	const files = urls.map((url) => access.file({ name: fileName(url), urls: [url] }));
	return fileSet(files.filter(({ name }) => isWeights(name) || SIDE_FILES.includes(name)));
}
