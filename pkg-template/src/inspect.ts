// What a checkpoint is, from its headers: the weights themselves are not read.

import { SternaError, toSternaError } from "./errors.js";
import { Access, type AccessSettings } from "./files/access.js";
import type { CheckpointFile } from "./files/checkpoint.js";
import { type OpenContext, openSource } from "./files/open.js";
import type { SourceSpec } from "./files/source.js";
import { pushSideFile, pushWeights } from "./loading.js";
import type { Platform } from "./platform.js";
import type { InspectReport, LoaderOptions, WasmLoader } from "./wasm-api.js";

/** Reads the header of one file of weights. */
async function readHeader(
	loader: WasmLoader,
	file: CheckpointFile,
	signal: AbortSignal | undefined,
): Promise<void> {
	let isReady = false;
	await pushWeights(loader, file, signal, () => {
		isReady = loader.headerReady();
		return isReady;
	});
	if (isReady) loader.skipRest();
	// The file ended before its header did: this tells what is wrong with it.
	else loader.endFile();
}

/** The report on what was read; a model that cannot be run can still be described, once a header is read. */
function reportAfter(loader: WasmLoader, failure: unknown): InspectReport {
	const isRefused = toSternaError(failure).code === "unsupported_format" || isPart(failure);
	if (failure instanceof SternaError || !isRefused) throw failure;
	try {
		return loader.inspect();
	} catch {
		throw failure;
	}
}

/** Whether a file was refused as one part of a model, which can be described by itself. */
const isPart = (failure: unknown) => toSternaError(failure).code === "invalid_argument";

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
		const files: InspectedFile[] = sideFiles.map(({ name, bytes, cachedBytes }) => ({
			name,
			size: bytes.length,
			cachedBytes,
		}));
		const loader = new instance.api.Loader(options);
		try {
			for (const file of sideFiles) pushSideFile(loader, file);
			let failure: unknown;
			for (const file of await checkpoint.weights(loader.shards(), signal)) {
				const measured = measuring(file);
				// After a problem the sizes of further files still count.
				if (!failure) await readHeader(loader, measured, signal).catch((error) => (failure = error));
				files.push(await measured.found());
			}
			return { report: failure ? reportAfter(loader, failure) : loader.inspect(), files };
		} catch (error) {
			throw instance.explain(error);
		} finally {
			await checkpoint.close?.();
			if (!instance.lost) loader.free();
		}
	} catch (error) {
		throw toSternaError(error);
	}
}

/** A file that remembers its size when it is opened. */
function measuring(file: CheckpointFile) {
	let { size } = file;
	return {
		name: file.name,
		async open(signal: AbortSignal | undefined) {
			const opened = await file.open(signal);
			size ??= opened.size ?? opened.likelySize;
			return opened;
		},
		async found(): Promise<InspectedFile> {
			const cachedBytes = file.look ? (await file.look()).stored : (size ?? 0);
			return { name: file.name, size, cachedBytes };
		},
	};
}
