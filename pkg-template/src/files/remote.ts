// Checkpoints behind a URL: a single file, or a folder as on Hugging Face.

import { AbortedError, NetworkError } from "../errors.js";
import {
	type Checkpoint,
	type CheckpointFile,
	fileSet,
	INDEX_FILE,
	readSideFile,
	refusal,
	SIDE_FILES,
	shardNames,
} from "./checkpoint.js";
import { type Download, download, PageError, remoteSize } from "./fetching.js";
import { sniff } from "./sniff.js";

/** How the files of a URL are fetched. */
type Fetch = typeof fetch;

/** The last part of a URL's path. */
function fileName(url: string): string {
	const part = new URL(url).pathname.split("/").pop() ?? "";
	try {
		return decodeURIComponent(part);
	} catch {
		// Not percent-encoded after all, as in a `data:` URL.
		return part;
	}
}

function remoteFile(name: string, url: string, fetcher: Fetch, size?: number): CheckpointFile {
	return { name, size, open: (signal) => download(url, fetcher, signal) };
}

/** A file whose download has begun: the first reader takes it over, later ones fetch anew. */
function begunFile(name: string, begun: Download, fetcher: Fetch): CheckpointFile {
	let first: Download | undefined = begun;
	return {
		name,
		size: begun.size,
		async open(signal) {
			const taken = first ?? (await download(begun.url, fetcher, signal));
			first = undefined;
			return taken;
		},
	};
}

/** Whether an error says that an optional file is not there. Servers of single-page apps answer with a page. */
function isAbsent(error: unknown): boolean {
	return error instanceof NetworkError && error.status !== undefined && error.status < 500;
}

/** The error for the address of a web page, such as a model's on a hub. */
function pageRefusal(url: string, { status }: NetworkError): NetworkError {
	const { hostname, pathname } = new URL(url);
	const isHub = hostname === "huggingface.co" || hostname === "hf.co";
	const [owner, repo] = pathname.split("/").filter(Boolean);
	const advice =
		isHub && owner && repo
			? `Write hf:${owner}/${repo} for this model, or hf:${owner}/${repo}/FILE for one file of it.`
			: "Give the address of a .gguf or .safetensors file itself, or of a folder that has config.json; a model on Hugging Face is written hf:owner/repo.";
	return new NetworkError(`${url} is a web page, not a model. ${advice}`, url, { status });
}

/** A folder whose own address gave a page: without a config.json, the page is what was given. */
function explainingPage(found: Checkpoint, url: string, page: PageError): Checkpoint {
	return {
		...found,
		sideFiles: (signal) =>
			found.sideFiles(signal).catch((error) => {
				throw isAbsent(error) ? pageRefusal(url, page) : error;
			}),
	};
}

/** A folder's file beside `base`, keeping the query, which may hold a signature. */
function sibling(base: URL, name: string): string {
	const url = new URL(encodeURIComponent(name), base);
	url.search = base.search;
	return url.href;
}

/** A safetensors checkpoint in a folder; `chosen` names the weights, else the index or the usual name does. */
function folder(base: URL, fetcher: Fetch, chosen: string | undefined): Checkpoint {
	const at = (name: string, size?: number) => remoteFile(name, sibling(base, name), fetcher, size);
	return {
		async sideFiles(signal) {
			const names = chosen ? SIDE_FILES.filter((name) => name !== INDEX_FILE) : SIDE_FILES;
			const files = await Promise.all(
				names.map((name) =>
					readSideFile(at(name), signal).catch((error) => {
						if (!isAbsent(error)) throw error;
						if (name !== "config.json") return undefined;
						if (error instanceof PageError) throw pageRefusal(base.href, error);
						const { message, status } = error as NetworkError;
						throw new NetworkError(
							`There is no config.json in ${base.href}, so this is not the folder of a model. Give the address of a folder that has one, or of a .gguf file. (${message})`,
							base.href,
							{ status },
						);
					}),
				),
			);
			return files.filter((file) => file !== undefined);
		},
		async weights(shards, signal) {
			const names = chosen === undefined ? shards : (shardNames(chosen) ?? [chosen]);
			if (names.length < 2) return [at(names[0] ?? "model.safetensors")];
			// The total for progress; a server that does not answer HEAD only costs that.
			const size = (name: string) =>
				remoteSize(sibling(base, name), fetcher, signal).catch((error) => {
					if (error instanceof AbortedError) throw error;
					return undefined;
				});
			return Promise.all(names.map(async (name) => at(name, await size(name))));
		},
	};
}

const folderOf = (url: string) => new URL(url.endsWith("/") ? url : url.replace(/([?#].*)?$/, "/$1"));

/** Looks what is behind a URL whose name does not tell: a file, or else a folder. */
async function probe(url: string, fetcher: Fetch, signal: AbortSignal | undefined): Promise<Checkpoint> {
	let found: Download;
	try {
		found = await download(url, fetcher, signal);
	} catch (error) {
		if (!isAbsent(error)) throw error;
		// A page may also be what a server of a folder, or of a single-page app, gives: config.json tells.
		const found = folder(folderOf(url), fetcher, undefined);
		return error instanceof PageError ? explainingPage(found, url, error) : found;
	}
	const format = sniff(found.head);
	if (format === "gguf" || format === "safetensors") {
		return fileSet([begunFile(`model.${format}`, found, fetcher)]);
	}
	await found.close();
	throw refusal(format, url);
}

/** Opens the checkpoint behind an absolute URL. */
export async function openUrl(
	url: string,
	fetcher: Fetch,
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	const name = fileName(url);
	if (/\.gguf$/i.test(name)) return fileSet([remoteFile(name, url, fetcher)]);
	if (/\.safetensors$/i.test(name)) return folder(new URL(".", url), fetcher, name);
	if (name === INDEX_FILE || name === "config.json") return folder(new URL(".", url), fetcher, undefined);
	if (name === "") return folder(new URL(url), fetcher, undefined);
	return probe(url, fetcher, signal);
}
