// The options of a load: which there are, and what the engine is told of them.

import { defined } from "./defined.js";
import type { EngineLoadOptions } from "./engine.js";
import { InvalidArgumentError } from "./errors.js";
import type { AccessSettings, Digests } from "./files/access.js";
import { HUB } from "./files/hub-reference.js";
import type { CacheOptions, LoadOptions } from "./types.js";
import { abortSignal, either, integer, objectOf, ofType, oneOf, type Rule, recordOf } from "./validate.js";

const url: Rule = (value) => (value instanceof URL ? undefined : "must be a URL");

const webAddress: Rule = (value) =>
	URL.canParse(String(value)) && /^https?:/.test(new URL(String(value)).protocol)
		? undefined
		: "must be a web address, starting with https://";

/** A digest as HTML's `integrity` writes it, or 64 hexadecimal digits. */
const DIGEST = /^(?:sha256-[A-Za-z0-9+/]{43}=|(?:sha256-)?[0-9a-fA-F]{64})$/;

const digest: Rule = (value) =>
	typeof value === "string" && DIGEST.test(value)
		? undefined
		: "must be a SHA-256 digest: 'sha256-' and base64, or 64 hexadecimal digits";

const CACHE_RULES = {
	backend: oneOf("auto", "opfs", "cache-api", "memory"),
	revalidate: ofType("boolean"),
	required: ofType("boolean"),
	persist: ofType("boolean"),
};

const NETWORK_RULES = {
	retries: integer(0, 100),
	stallTimeout: integer(1, 2 ** 31 - 1),
	connections: integer(1, 16),
};

/** What a model's files are found, fetched and read with. */
export const SOURCE_RULES = {
	contextLength: integer(1, 2 ** 32 - 1),
	kvCache: oneOf("f32", "f16", "q16", "q8"),
	activations: oneOf("auto", "int8", "float"),
	embedding: oneOf("auto", "file", "f16", "q8", "q4"),
	i2sLayout: oneOf("x86", "arm"),
	cache: either(ofType("boolean"), objectOf(CACHE_RULES)),
	hfToken: ofType("string"),
	hfEndpoint: webAddress,
	network: objectOf(NETWORK_RULES),
	signal: abortSignal,
	fetch: ofType("function"),
	worker: ofType("boolean"),
	wasmUrl: either(ofType("string"), url),
};

export const LOAD_RULES = {
	...SOURCE_RULES,
	device: oneOf("auto", "wasm", "webgpu"),
	powerPreference: oneOf("auto", "high-performance", "low-power"),
	threads: either(oneOf("auto"), integer(1)),
	integrity: either(digest, recordOf(digest)),
	onProgress: ofType("function"),
};

/** Where the hub is. */
export const hubEndpoint = ({ hfEndpoint = HUB }: LoadOptions) => String(hfEndpoint).replace(/\/+$/, "");

/** The absolute address of the wasm modules. */
function absolute(wasmUrl: string | URL): string {
	const base = globalThis.document?.baseURI ?? globalThis.location?.href;
	if (URL.canParse(wasmUrl, base)) return new URL(wasmUrl, base).href;
	throw new InvalidArgumentError(
		`loadModel: the option 'wasmUrl' is not an address: '${wasmUrl}'. Give that of the folder with the package's .wasm files.`,
	);
}

/** A digest in hexadecimal. */
function hexDigest(text: string): string {
	const value = text.replace(/^sha256-/, "");
	if (value.length === 64) return value.toLowerCase();
	return Array.from(atob(value), (character) => character.charCodeAt(0).toString(16).padStart(2, "0")).join(
		"",
	);
}

function digests(integrity: LoadOptions["integrity"]): Digests | undefined {
	if (integrity === undefined) return undefined;
	if (typeof integrity === "string") return hexDigest(integrity);
	return Object.fromEntries(Object.entries(integrity).map(([name, text]) => [name, hexDigest(text)]));
}

/** How files are got and kept, as the options say. */
function accessSettings(options: LoadOptions, model: string): AccessSettings {
	const { cache = true, integrity, hfToken: token, network } = options;
	const wanted: CacheOptions | undefined = cache === true ? {} : cache || undefined;
	const { backend = "auto", revalidate = true, required = false } = wanted ?? {};
	return {
		model,
		cache: wanted && { backend, revalidate, required },
		digests: digests(integrity),
		patience: defined({ ...network }),
		hub: { endpoint: hubEndpoint(options), token },
	};
}

/** What the engine is told. */
export function engineLoadOptions(options: LoadOptions, model: string): EngineLoadOptions {
	const { contextLength, kvCache, activations, embedding, i2sLayout, wasmUrl } = options;
	const { device = "auto", powerPreference = "auto", threads = "auto" } = options;
	return {
		...defined({ contextLength, kvCache, activations, embedding, i2sLayout }),
		device,
		powerPreference,
		threads,
		wasmUrl: wasmUrl === undefined ? undefined : absolute(wasmUrl),
		access: accessSettings(options, model),
	};
}
