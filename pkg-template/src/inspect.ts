// What a checkpoint is, from its headers: the weights themselves are not read.

import { SternaError, toSternaError } from "./errors.js";
import { Access, type AccessSettings } from "./files/access.js";
import type { CheckpointFile } from "./files/checkpoint.js";
import { type OpenContext, openSource } from "./files/open.js";
import type { SourceSpec } from "./files/source.js";
import { pushSideFile, pushWeights } from "./loading.js";
import type { Platform } from "./local-engine.js";
import type { InspectReport, LoaderOptions, WasmLoader } from "./wasm-api.js";

/** What a function makes of a new loader, which is freed afterwards. */
type WithLoader = <T>(use: (loader: WasmLoader) => T | Promise<T>) => Promise<T>;

/** Reads the header of one file of weights and reports on it. */
async function inspectFile(
	loader: WasmLoader,
	file: CheckpointFile,
	signal: AbortSignal | undefined,
): Promise<InspectReport> {
	try {
		await pushWeights(loader, file, signal, () => loader.headerReady());
	} catch (error) {
		// A model that cannot be run can still be described, once its header is read.
		if (toSternaError(error).code !== "unsupported_format" || error instanceof SternaError) throw error;
		try {
			return loader.inspect();
		} catch {
			throw error;
		}
	}
	return loader.inspect();
}

/** One report of a checkpoint's parts. */
function merge(reports: InspectReport[]): InspectReport {
	const [first, ...others] = reports as [InspectReport, ...InspectReport[]];
	const sum = (of: (report: InspectReport) => number) =>
		reports.reduce((total, report) => total + of(report), 0);
	if (others.length === 0) return first;
	const encodings = new Map<string, InspectReport["encodings"][number]>();
	for (const { encoding, tensors, parameters, bytes } of reports.flatMap((report) => report.encodings)) {
		const known = encodings.get(encoding) ?? { encoding, tensors: 0, parameters: 0, bytes: 0 };
		encodings.set(encoding, {
			encoding,
			tensors: known.tensors + tensors,
			parameters: known.parameters + parameters,
			bytes: known.bytes + bytes,
		});
	}
	const weights = sum((report) => report.memory?.weights ?? 0);
	const problem = reports.find((report) => report.problem)?.problem;
	return {
		...first,
		supported: reports.every((report) => report.supported),
		problem,
		parameters: sum((report) => report.parameters),
		encodings: [...encodings.values()],
		fileBytes: sum((report) => report.fileBytes),
		tensors: reports.flatMap((report) => report.tensors),
		memory: first.memory && { ...first.memory, weights, total: weights + first.memory.kvCache },
	};
}

/** What is looked at, and how. */
export interface Inspection {
	source: SourceSpec;
	/** How the model would be loaded. */
	options: LoaderOptions;
	/** How its files are got. Nothing is stored by looking at them. */
	access: AccessSettings;
	wasmUrl?: string;
}

/** A file of a model, and how much of it is stored. */
export interface InspectedFile {
	name: string;
	size?: number;
	cachedBytes: number;
}

/** Reads a checkpoint's headers. */
export async function inspectModel(
	platform: Platform,
	{ source, options, access: settings, wasmUrl }: Inspection,
	signal: AbortSignal | undefined,
): Promise<{ report: InspectReport; files: InspectedFile[] }> {
	try {
		const { instance } = await platform.instantiate(wasmUrl, 1);
		const context: OpenContext = platform;
		const access = await Access.open({ ...settings, isReadOnly: true }, context, {});
		const checkpoint = await openSource(source, context, access, signal);
		const sideFiles = await checkpoint.sideFiles(signal);
		const withLoader: WithLoader = async (use) => {
			const loader = new instance.api.Loader(options);
			try {
				for (const file of sideFiles) pushSideFile(loader, file);
				return await use(loader);
			} catch (error) {
				throw instance.explain(error);
			} finally {
				if (!instance.lost) loader.free();
			}
		};
		const weights = await withLoader((loader) => checkpoint.weights(loader.shards(), signal));
		const reports: InspectReport[] = [];
		const files: InspectedFile[] = sideFiles.map(({ name, bytes, cachedBytes }) => ({
			name,
			size: bytes.length,
			cachedBytes,
		}));
		// A loader wants each file whole before the next one, so every shard gets its own.
		for (const file of weights) {
			let size = file.size;
			const measured: CheckpointFile = {
				name: file.name,
				async open(signal) {
					const opened = await file.open(signal);
					size ??= opened.size ?? opened.likelySize;
					return opened;
				},
			};
			reports.push(await withLoader((loader) => inspectFile(loader, measured, signal)));
			const cachedBytes = file.look ? (await file.look()).stored : (size ?? 0);
			files.push({ name: file.name, size, cachedBytes });
		}
		return { report: merge(reports), files };
	} catch (error) {
		throw toSternaError(error);
	}
}
