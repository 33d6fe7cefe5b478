// Names of models on the Hugging Face hub, written as `hf:` references or as addresses of the hub's pages and files.

import { InvalidArgumentError } from "../errors.js";

/** A model, or one file of it, at a revision. */
export interface HubReference {
	/** `owner/repo` */
	repo: string;
	file?: string;
	revision: string;
}

/** Where the hub is, unless a caller says otherwise. */
export const HUB = "https://huggingface.co";

/** `hf:owner/repo[/file][@revision]` */
export function hubReference(text: string): HubReference {
	const [, owner, repo, file, revision = "main"] =
		/^hf:([^/@]+)\/([^/@]+)(?:\/([^@]*[^/@]))?\/?(?:@(.+))?$/.exec(text) ?? [];
	if (!owner || !repo) {
		throw new InvalidArgumentError(
			`'${text}' is not a Hugging Face reference; write hf:owner/repo, hf:owner/repo/file or hf:owner/repo/file@revision.`,
		);
	}
	return { repo: `${owner}/${repo}`, ...(file && { file }), revision };
}

/** The first parts of the hub's other pages. */
const NOT_OWNERS = new Set(["api", "datasets", "spaces", "models", "docs", "blog", "collections", "papers"]);

/** The model that an address of the hub's belongs to: its page, its file list, or one of its files. */
export function hubReferenceOfUrl(url: string, endpoint: string): HubReference | undefined {
	const { origin, pathname, search } = new URL(url);
	const isHub = [new URL(endpoint).origin, HUB, "https://hf.co"].includes(origin);
	// A query may be a signature, which only the address as it is can use.
	if (!isHub || (search !== "" && search !== "?download=true")) return undefined;
	let parts: string[];
	try {
		parts = pathname.split("/").filter(Boolean).map(decodeURIComponent);
	} catch {
		return undefined;
	}
	const [owner, name, verb, revision, ...path] = parts;
	if (!owner || !name || NOT_OWNERS.has(owner)) return undefined;
	const repo = `${owner}/${name}`;
	if (verb === undefined) return { repo, revision: "main" };
	if (!["resolve", "blob", "tree", "raw"].includes(verb) || !revision) return undefined;
	return { repo, revision, ...(path.length > 0 && { file: path.join("/") }) };
}
