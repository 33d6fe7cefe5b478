// Names a model's source as plain data, so that a worker can be told about it. Relative addresses are
// resolved here, where the page's own address is known.

import { InvalidArgumentError } from "../errors.js";
import type { ModelSource } from "../types.js";

/** A source as plain data. */
export type SourceSpec =
	| { kind: "url"; url: string }
	| { kind: "files"; files: { name: string; blob: Blob }[] }
	| { kind: "bytes"; bytes: Uint8Array }
	| { kind: "path"; path: string };

const HUB = "https://huggingface.co";

/** `hf:owner/repo[/file][@revision]` → the file's or the folder's address. */
function hubUrl(reference: string): string {
	const [, owner, repo, file = "", revision = "main"] =
		/^hf:([^/@]+)\/([^/@]+)(?:\/([^@]+))?(?:@(.+))?$/.exec(reference) ?? [];
	if (!owner || !repo) {
		throw new InvalidArgumentError(
			`'${reference}' is not a Hugging Face reference; write hf:owner/repo, hf:owner/repo/file or hf:owner/repo/file@revision.`,
		);
	}
	const path = file.split("/").map(encodeURIComponent).join("/");
	return `${HUB}/${owner}/${repo}/resolve/${encodeURIComponent(revision)}/${path}`;
}

function describeText(text: string, isNode: boolean): SourceSpec {
	if (text === "") throw new InvalidArgumentError("The model source is an empty string.");
	if (text.startsWith("hf:")) return { kind: "url", url: hubUrl(text) };
	// A scheme has at least two letters: `C:\model.gguf` is a path.
	const isAbsolute = /^[a-z][a-z0-9+.-]+:/i.test(text);
	if (isNode && text.startsWith("file:")) return { kind: "path", path: text };
	if (isNode && !isAbsolute) return { kind: "path", path: text };
	const base = isAbsolute ? undefined : (globalThis.document?.baseURI ?? globalThis.location?.href);
	if (!URL.canParse(text, base)) {
		throw new InvalidArgumentError(`'${text}' is not a URL; give an absolute one, starting with https://.`);
	}
	return { kind: "url", url: new URL(text, base).href };
}

function describeFiles(files: readonly File[]): SourceSpec {
	if (files.length === 0) throw new InvalidArgumentError("The list of files is empty.");
	if (!files.every((file) => file instanceof Blob && typeof file.name === "string")) {
		throw new InvalidArgumentError("A list of files must contain File objects only.");
	}
	return { kind: "files", files: files.map((file) => ({ name: file.name, blob: file })) };
}

/** Describes a source, or refuses it with `invalid_argument`. */
export function describeSource(source: ModelSource, isNode: boolean): SourceSpec {
	if (typeof source === "string") return describeText(source, isNode);
	if (source instanceof URL) return describeText(source.href, isNode);
	if (source instanceof Blob) {
		const name = "name" in source && typeof source.name === "string" ? source.name : "";
		return { kind: "files", files: [{ name, blob: source }] };
	}
	if (source instanceof ArrayBuffer) return { kind: "bytes", bytes: new Uint8Array(source) };
	if (source instanceof Uint8Array) return { kind: "bytes", bytes: source };
	if (Array.isArray(source)) return describeFiles(source);
	throw new InvalidArgumentError(
		"The model source must be a URL, a File, a list of Files, a Blob, an ArrayBuffer or a Uint8Array.",
	);
}
