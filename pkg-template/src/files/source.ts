// Names a model's source as plain data, so that a worker can be told about it. Relative addresses are
// resolved here, where the page's own address is known.

import { InvalidArgumentError } from "../errors.js";
import type { ModelSource } from "../types.js";
import { hubReference, hubReferenceOfUrl } from "./hub-reference.js";
import { isPicked, type Picked, pickFiles } from "./picked.js";

/** A source as plain data. */
export type SourceSpec =
	/** One place, under one address or several. */
	| { kind: "url"; urls: string[] }
	/** The files of one model, an address each. */
	| { kind: "parts"; urls: string[] }
	| { kind: "hub"; repo: string; file?: string; revision: string }
	| { kind: "files"; files: { name: string; blob: Blob }[] }
	| { kind: "bytes"; bytes: Uint8Array }
	| { kind: "path"; path: string };

/** What describing a source needs to know. */
export interface Surrounding {
	/** Whether strings may be paths. */
	hasFileSystem: boolean;
	/** The hub's address. */
	endpoint: string;
}

function absoluteUrl(text: string): string {
	// A scheme has at least two letters: `C:\model.gguf` is a path.
	const isAbsolute = /^[a-z][a-z0-9+.-]+:/i.test(text);
	const base = isAbsolute ? undefined : (globalThis.document?.baseURI ?? globalThis.location?.href);
	if (!URL.canParse(text, base)) {
		throw new InvalidArgumentError(`'${text}' is not a URL; give an absolute one, starting with https://.`);
	}
	return new URL(text, base).href;
}

function describeText(text: string, { hasFileSystem, endpoint }: Surrounding): SourceSpec {
	if (text === "") throw new InvalidArgumentError("The model source is an empty string.");
	if (text.startsWith("hf:")) return { kind: "hub", ...hubReference(text) };
	const isAbsolute = /^[a-z][a-z0-9+.-]+:/i.test(text);
	if (hasFileSystem && (!isAbsolute || text.startsWith("file:"))) return { kind: "path", path: text };
	const url = absoluteUrl(text);
	const reference = hubReferenceOfUrl(url, endpoint);
	return reference ? { kind: "hub", ...reference } : { kind: "url", urls: [url] };
}

/** The last part of an address's path. */
const lastPart = (url: string) => new URL(url).pathname.split("/").pop();

/** Several addresses: of one file or folder, or of the files of one model. */
function describeUrls(list: readonly (string | URL)[]): SourceSpec {
	const urls = list.map((item) => absoluteUrl(String(item)));
	const web = urls.find((url) => !/^https?:/.test(url));
	if (web !== undefined) {
		throw new InvalidArgumentError(
			`'${web}' cannot be one of several addresses: those must be web addresses.`,
		);
	}
	const names = new Set(urls.map(lastPart));
	if (names.size === 1) return { kind: "url", urls };
	if (names.size < urls.length || names.has("")) {
		throw new InvalidArgumentError(
			"The list of addresses is not clear: give either the addresses of one file or folder, which all end in the same name, or those of a model's files, which all have different names.",
		);
	}
	return { kind: "parts", urls };
}

function describeFiles(files: readonly File[]): SourceSpec {
	if (!files.every((file) => file instanceof Blob && typeof file.name === "string")) {
		throw new InvalidArgumentError("A list must contain File objects only, or addresses only.");
	}
	return { kind: "files", files: files.map((file) => ({ name: file.name, blob: file })) };
}

function describeList(list: readonly unknown[]): SourceSpec {
	if (list.length === 0) throw new InvalidArgumentError("The list of files is empty.");
	const isText = (item: unknown) => typeof item === "string" || item instanceof URL;
	return list.every(isText) ? describeUrls(list as (string | URL)[]) : describeFiles(list as readonly File[]);
}

/** Describes a source, or refuses it with `invalid_argument`. A drop's data is looked at before this returns. */
export function describeSource(
	source: ModelSource,
	surrounding: Surrounding,
): SourceSpec | Promise<SourceSpec> {
	if (typeof source === "string") return describeText(source, surrounding);
	if (source instanceof URL) return describeText(source.href, surrounding);
	if (source instanceof Blob) {
		const name = "name" in source && typeof source.name === "string" ? source.name : "";
		return { kind: "files", files: [{ name, blob: source }] };
	}
	if (source instanceof ArrayBuffer) return { kind: "bytes", bytes: new Uint8Array(source) };
	if (source instanceof Uint8Array) return { kind: "bytes", bytes: source };
	if (isPicked(source)) return pickFiles(source as Picked).then(describeList);
	if (Array.isArray(source)) return describeList(source);
	throw new InvalidArgumentError(
		"The model source must be a URL or a list of them, a File, a list of Files, a file or directory handle, the data of a drop, a Blob, an ArrayBuffer or a Uint8Array.",
	);
}

/** What a source's stored files are known by. */
export function modelName(spec: SourceSpec): string {
	switch (spec.kind) {
		case "url":
		case "parts":
			return spec.urls[0]!;
		case "hub":
			return `hf:${[spec.repo, spec.file].filter(Boolean).join("/")}@${spec.revision}`;
		default:
			return "";
	}
}
