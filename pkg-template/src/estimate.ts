// What loading a model would take, from its headers: bytes to download and to store, memory, and advice.

import type { EngineLoadOptions } from "./engine.js";
import type { SourceSpec } from "./files/source.js";
import { type InspectedFile, inspectModel } from "./inspect.js";
import type { Platform } from "./platform.js";
import { availableBytes } from "./store/quota.js";
import type { Estimate } from "./types.js";
import type { InspectReport, LoaderOptions } from "./wasm-api.js";

const GIB = 2 ** 30;

/** What a 32-bit WebAssembly memory can hold, less what allocation leaves unused. */
const WASM_LIMIT = 3.9 * GIB;

/** The engine's code, its stacks, the tokenizer's tables and the activations. */
const ENGINE_BYTES = 48 << 20;

/** Below this much is left, the browser has to be asked for less. */
const deviceMemory = (): number | undefined =>
	(globalThis.navigator as { deviceMemory?: number })?.deviceMemory;

/**
 * Bytes that a page can expect to get. Browsers tell a device's memory roughly, and from 8 GiB on no more than
 * that; of less, half is taken by everything else.
 */
function availableMemory(): number {
	const gib = deviceMemory();
	return gib === undefined || gib >= 8 ? WASM_LIMIT : Math.min(WASM_LIMIT, (gib / 2) * GIB);
}

const size = (bytes: number) =>
	bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.ceil(bytes / 1e6)} MB`;

/** The sum of what may be unknown. */
const sum = (values: (number | undefined)[]): number | undefined =>
	values.reduce(
		(total, value) => (total === undefined || value === undefined ? undefined : total + value),
		0,
	);

/** What helps a model that does not fit, with what it brings. */
function memoryAdvice(
	memory: NonNullable<Estimate["memory"]>,
	contextLength: number,
	{ kvCache, embedding }: LoaderOptions,
): string[] {
	const excess = memory.total - memory.available;
	if (excess <= 0) return [];
	const advice = [
		`The model takes ${size(memory.total)} of memory, about ${size(excess)} more than this device can give.`,
	];
	const perToken = memory.kvCache / contextLength;
	const fitting = Math.floor((memory.kvCache - excess) / perToken / 256) * 256;
	if (fitting >= 256) advice.push(`Set 'contextLength' to ${fitting} or less.`);
	if (kvCache !== "q8") {
		const smaller = kvCache === "f32" ? "q16" : "q8";
		advice.push(
			`Set 'kvCache' to "${smaller}": that halves the ${size(memory.kvCache)} of the key-value cache.`,
		);
	}
	if (embedding === "f16" || embedding === "file") {
		advice.push(`Set 'embedding' to "q8", which takes half the memory of "f16".`);
	}
	if (memory.weights + memory.engine > memory.available)
		advice.push("Choose a smaller model: the weights alone do not fit.");
	return advice;
}

function storageAdvice(storage: Estimate["storage"]): string[] {
	if (storage?.available === undefined || storage.needed <= storage.available) return [];
	return [
		`The browser allows ${size(storage.available)} more to be stored, and ${size(storage.needed)} are needed: delete other models (cache.delete), or load it without storing it.`,
	];
}

function memoryOf(report: InspectReport): Estimate["memory"] {
	if (!report.memory) return undefined;
	const { weights, kvCache } = report.memory;
	return {
		weights,
		kvCache,
		engine: ENGINE_BYTES,
		total: weights + kvCache + ENGINE_BYTES,
		available: availableMemory(),
	};
}

function sizesOf(files: InspectedFile[]): Pick<Estimate, "totalBytes" | "downloadBytes"> {
	const totalBytes = sum(files.map((file) => file.size));
	const cached = sum(files.map((file) => file.cachedBytes)) ?? 0;
	return {
		totalBytes,
		downloadBytes: totalBytes === undefined ? undefined : Math.max(0, totalBytes - cached),
	};
}

/** Estimates a load. */
export async function estimateModel(
	platform: Platform,
	source: SourceSpec,
	{ wasmUrl, threads: _, device: __, powerPreference: ___, access, ...options }: EngineLoadOptions,
	signal: AbortSignal | undefined,
): Promise<Estimate> {
	const inspection = { source, options, access, wasmUrl };
	const { report, files } = await inspectModel(platform, inspection, signal);
	const memory = memoryOf(report);
	const { totalBytes, downloadBytes } = sizesOf(files);
	const isStored = access.cache !== undefined && platform.openStore !== undefined;
	const available = isStored ? await availableBytes() : undefined;
	const storage = isStored && downloadBytes !== undefined ? { needed: downloadBytes, available } : undefined;
	const contextLength = report.memory?.contextLength;
	const advice = [
		...(memory && contextLength ? memoryAdvice(memory, contextLength, options) : []),
		...storageAdvice(storage),
	];
	return {
		supported: report.supported,
		problem: report.problem,
		files,
		totalBytes,
		downloadBytes,
		memory,
		storage,
		fits: report.supported && memory !== undefined && memory.total <= memory.available,
		advice,
		architecture: report.architecture,
		parameters: report.parameters,
		contextLength,
		encodings: report.encodings,
	};
}
