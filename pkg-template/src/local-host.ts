// Loads engines into this thread: chooses what computes, and feeds a checkpoint to it.

import type { Device, Engine, EngineHost, EngineLoadOptions, LoadContext } from "./engine.js";
import {
	InternalError,
	type SternaErrorCode,
	throwIfAborted,
	toSternaError,
	UnsupportedBrowserError,
} from "./errors.js";
import { estimateModel } from "./estimate.js";
import { Access } from "./files/access.js";
import type { Checkpoint } from "./files/checkpoint.js";
import { openSource } from "./files/open.js";
import type { SourceSpec } from "./files/source.js";
import type { Instance } from "./instances.js";
import { feedCheckpoint } from "./loading.js";
import { type LoadedModel, LocalEngine, type Reload } from "./local-engine.js";
import type { Platform } from "./platform.js";
import { ProgressMeter } from "./progress.js";
import { Team } from "./threads/team.js";
import type { Fallback } from "./types.js";
import type { WasmLoader, WasmModel } from "./wasm-api.js";
import { lookForGpu } from "./webgpu.js";

/** Loads engines into this thread. */
export function localHost(platform: Platform): EngineHost {
	return {
		async load(source, options, context) {
			try {
				return await load(fetchingWith(platform, context), source, options, context);
			} catch (error) {
				throw toSternaError(error);
			}
		},
		estimate: (source, options, context) =>
			estimateModel(fetchingWith(platform, context), source, options, context.signal),
	};
}

/** The platform with a caller's own `fetch`, where there is one. */
const fetchingWith = (platform: Platform, { fetch }: LoadContext): Platform =>
	fetch ? { ...platform, fetch } : platform;

/** The devices to try, best first. */
function candidates(device: EngineLoadOptions["device"]): Device[] {
	return device === "auto" ? ["webgpu", "wasm"] : [device];
}

/** What another device may do better. */
const DEVICE_CODES: readonly SternaErrorCode[] = ["unsupported_browser", "out_of_memory", "device_lost"];

async function load(
	platform: Platform,
	source: SourceSpec,
	options: EngineLoadOptions,
	{ signal, gate, onEvent }: LoadContext,
): Promise<Engine> {
	const loaded = await loadAnywhere(platform, source, options, signal, new ProgressMeter(onEvent, gate));
	return new LocalEngine(loaded, reloader(platform, source, options));
}

/**
 * How a model is loaded once more, for when its device is lost; `undefined` where its bytes were given, which only
 * for that would have to be kept.
 */
function reloader(platform: Platform, source: SourceSpec, options: EngineLoadOptions): Reload | undefined {
	if (source.kind === "bytes") return undefined;
	const { cache, ...access } = options.access;
	// What was stored is what was loaded, whatever the server has by now.
	const again = { ...options, access: { ...access, cache: cache && { ...cache, revalidate: false } } };
	return (signal) => loadAnywhere(platform, source, again, signal, new ProgressMeter(undefined));
}

/** Loads a model onto the first device that can. */
async function loadAnywhere(
	platform: Platform,
	source: SourceSpec,
	{ device, ...options }: EngineLoadOptions,
	signal: AbortSignal | undefined,
	meter: ProgressMeter,
): Promise<LoadedModel> {
	const start = performance.now();
	throwIfAborted(signal);
	const fallbacks: Fallback[] = [];
	const devices = candidates(device);
	const isChoice = devices.length > 1;
	for (const candidate of devices) {
		const attempt = { platform, source, options, isChoice, fallbacks, signal, meter, start };
		try {
			return await (candidate === "webgpu" ? loadOnGpu(attempt) : loadOnCpu(attempt));
		} catch (error) {
			const known = toSternaError(error);
			if (candidate !== "webgpu" || !isChoice || !DEVICE_CODES.includes(known.code)) throw known;
			fallbacks.push({ device: candidate, reason: known.message });
		}
	}
	throw new InternalError("No device was tried.");
}

/** One way to load a model. */
interface Attempt {
	platform: Platform;
	source: SourceSpec;
	options: Omit<EngineLoadOptions, "device">;
	/** Whether another device is tried when this one cannot be used. */
	isChoice: boolean;
	fallbacks: Fallback[];
	signal: AbortSignal | undefined;
	meter: ProgressMeter;
	/** When the load began. */
	start: number;
}

async function loadOnGpu(attempt: Attempt): Promise<LoadedModel> {
	const { wasmUrl: _, threads: __, access: ___, powerPreference, ...options } = attempt.options;
	throwIfAborted(attempt.signal);
	const found = await lookForGpu(powerPreference);
	const advice = attempt.isChoice ? "" : ' Use device "wasm", or "auto" to fall back by itself.';
	if (found.kind === "none") throw new UnsupportedBrowserError(found.reason + advice);
	if (found.isSoftware && attempt.isChoice) {
		throw new UnsupportedBrowserError("WebGPU only has the processor, which is faster without it.");
	}
	const { instance, access, checkpoint } = await open(attempt, 1);
	const create = () => instance.api.Loader.onGpu({ ...options, gpu: found.options });
	return loadInto(attempt, { instance, threads: 1, access, checkpoint, create });
}

async function loadOnCpu(attempt: Attempt): Promise<LoadedModel> {
	const { wasmUrl: _, threads: wanted, access: __, powerPreference: ___, ...options } = attempt.options;
	throwIfAborted(attempt.signal);
	const { instance, threads, access, checkpoint } = await open(attempt, wanted);
	const create = async () => new instance.api.Loader({ ...options, threads });
	return loadInto(attempt, { instance, threads, access, checkpoint, create });
}

/** The module and the checkpoint, side by side. */
async function open(
	{ platform, source, options, signal, meter }: Attempt,
	wanted: EngineLoadOptions["threads"],
): Promise<{ instance: Instance; threads: number; access: Access; checkpoint: Checkpoint }> {
	meter.restart();
	const accessing = Access.open(options.access, platform, meter);
	const opening = accessing.then((access) => openSource(source, platform, access, signal));
	try {
		const [module, checkpoint] = await Promise.all([platform.instantiate(options.wasmUrl, wanted), opening]);
		return { ...module, access: await accessing, checkpoint };
	} catch (error) {
		opening.then((checkpoint) => checkpoint.close?.()).catch(() => undefined);
		throw error;
	}
}

/** What a model is made with. */
interface Means {
	instance: Instance;
	/** Threads that compute. */
	threads: number;
	access: Access;
	checkpoint: Checkpoint;
	create: () => Promise<WasmLoader>;
}

async function createLoader(instance: Instance, create: () => Promise<WasmLoader>): Promise<WasmLoader> {
	if (instance.lost) throw instance.lost;
	try {
		return await create();
	} catch (error) {
		throw instance.explain(error);
	}
}

/** Whatever happens, nothing stays open: another device may be tried with the same files. */
async function loadInto(attempt: Attempt, means: Means): Promise<LoadedModel> {
	try {
		const loaded = await fill(attempt, means);
		await means.access.tidy();
		attempt.meter.enter("ready");
		return loaded;
	} finally {
		await means.checkpoint.close?.();
	}
}

async function fill(
	{ platform, start, fallbacks, signal, meter }: Attempt,
	{ instance, threads, checkpoint, create }: Means,
): Promise<LoadedModel> {
	const loader = await createLoader(instance, create);
	let team: Team | undefined;
	let bytes: number;
	let model: WasmModel;
	try {
		const { module, memory } = instance;
		const seats = Array.from({ length: threads - 1 }, () => loader.threadSeat());
		team = await Team.start(
			seats.map((seat) => ({ module, memory, seat })),
			platform.startThread,
		);
		bytes = await feedCheckpoint(loader, checkpoint, signal, meter);
		if (instance.lost) throw instance.lost;
	} catch (error) {
		const known = instance.explain(error);
		if (!instance.lost) loader.free();
		await team?.end();
		throw known;
	}
	try {
		// Takes the loader along, whether it succeeds or not.
		model = await loader.finish();
	} catch (error) {
		const known = instance.explain(error);
		await team.end();
		throw known;
	}
	const duration = performance.now() - start;
	return { instance, team, model, fallbacks, load: { bytes, duration } };
}
