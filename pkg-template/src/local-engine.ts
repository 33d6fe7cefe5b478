// The engine in this thread, over the wasm module: a loop of short steps that gives the event loop a turn
// between any two, so that aborts get through.

import type {
	CallContext,
	Device,
	Engine,
	EngineHost,
	EngineLoadOptions,
	EvaluationKind,
	Prompt,
} from "./engine.js";
import {
	AbortedError,
	InternalError,
	InvalidArgumentError,
	OutOfMemoryError,
	type SternaError,
	type SternaErrorCode,
	throwIfAborted,
	toSternaError,
	UnsupportedBrowserError,
} from "./errors.js";
import type { Checkpoint } from "./files/checkpoint.js";
import { type OpenContext, openSource } from "./files/open.js";
import type { Instance } from "./instances.js";
import { JobQueue } from "./job-queue.js";
import { feedCheckpoint } from "./loading.js";
import { type StartThread, Team } from "./threads/team.js";
import type {
	Delta,
	Fallback,
	GenerationResult,
	LoadProgress,
	Message,
	ModelInfo,
	ModelStats,
	Timing,
} from "./types.js";
import type { WasmGenerationOptions, WasmLoader, WasmModel, WasmStep } from "./wasm-api.js";
import { lookForGpu } from "./webgpu.js";
import { yieldToEventLoop } from "./yield.js";

/** What the engine takes from its surroundings. */
export interface Platform extends OpenContext {
	/** Instantiates the wasm module, once for each build, and grants threads. */
	instantiate(
		wasmUrl: string | undefined,
		threads: "auto" | number,
	): Promise<{ instance: Instance; threads: number }>;
	startThread: StartThread;
}

const tokensPerSecond = (tokens: number, milliseconds: number) =>
	tokens > 0 && milliseconds > 0 ? (1000 * tokens) / milliseconds : 0;

/** Times and speeds of one generation. */
class Stopwatch {
	readonly #start = performance.now();
	#first: number | undefined;
	#last = this.#start;
	#tokens = 0;

	token(): void {
		this.#last = performance.now();
		this.#first ??= this.#last;
		this.#tokens += 1;
	}

	timing(computedPromptTokens: number): Timing {
		const total = performance.now() - this.#start;
		const first = this.#first === undefined ? total : this.#first - this.#start;
		return {
			timeToFirstToken: first,
			prefillTps: tokensPerSecond(computedPromptTokens, first),
			decodeTps: tokensPerSecond(this.#tokens - 1, this.#last - (this.#first ?? this.#last)),
			total,
		};
	}
}

class LocalEngine implements Engine {
	readonly info: ModelInfo;
	readonly #model: WasmModel;
	readonly #instance: Instance;
	readonly #stats: Omit<ModelStats, "memory">;
	readonly #queue = new JobQueue();
	readonly #endThreads: () => void;
	#lost: SternaError | undefined;

	constructor(
		instance: Instance,
		team: Team,
		model: WasmModel,
		load: ModelStats["load"],
		fallbacks: Fallback[],
	) {
		this.#instance = instance;
		this.#model = model;
		this.#stats = { load, generations: 0, promptTokens: 0, completionTokens: 0 };
		// Holds on to the threads only: a model that its user has forgotten can still be collected and freed.
		this.#endThreads = () => team.terminate();
		instance.onLost(this.#endThreads);
		const { memory: _, rejectedKernels, ...info } = model.info();
		const rejected = rejectedKernels.map((reason): Fallback => ({ device: "webgpu", reason }));
		this.info = { ...info, fallbacks: [...fallbacks, ...rejected] };
	}

	/** Calls into wasm; after a trap, in this model or in another of its instance, every call fails as that one did. */
	#call<T>(use: (model: WasmModel) => T): T {
		const lost = this.#lost ?? this.#instance.lost;
		if (lost) throw lost;
		try {
			return use(this.#model);
		} catch (error) {
			const known = this.#instance.explain(error);
			if (known.code === "internal" || known.code === "device_lost") {
				this.#lost = known;
				if (!this.#instance.lost) this.#endThreads();
			}
			throw known;
		}
	}

	/** {@link #call} of what may end later: results of a GPU are promises. */
	async #finished<T>(use: (model: WasmModel) => T | Promise<T>): Promise<T> {
		const result = this.#call(use);
		// What is there at once is not waited for: a step on the processor must not cost a turn.
		if (!(result instanceof Promise)) return result;
		try {
			return await result;
		} catch (error) {
			return this.#call<T>(() => {
				throw error;
			});
		}
	}

	#promptIds(prompt: Prompt): Uint32Array {
		switch (prompt.kind) {
			case "messages":
				return this.#call((model) => model.encodeChat(prompt.messages, { addGenerationPrompt: true }));
			case "text":
				if (prompt.text === "") {
					throw new InvalidArgumentError(
						"The prompt is empty: give some text, or the id of the beginning-of-sequence token.",
					);
				}
				return this.#call((model) => model.tokenize(prompt.text, true));
			case "ids":
				return prompt.ids;
		}
	}

	generate(
		prompt: Prompt,
		options: WasmGenerationOptions,
		{ signal, onEvent }: CallContext<Delta>,
	): Promise<GenerationResult> {
		return this.#queue.run(signal, async (stop) => {
			const watch = new Stopwatch();
			const ids = this.#promptIds(prompt);
			await abortsInTime(stop);
			const newText = prompt.kind === "messages";
			this.#call((model) => model.startGeneration(ids, { ...options, newText }));
			const tokenIds: number[] = [];
			let text = "";
			const emit = (delta: Delta) => {
				text += delta.text;
				onEvent?.(delta);
			};
			for (;;) {
				await yieldToEventLoop();
				throwIfAborted(stop, text);
				const step = await this.#finished((model) => model.step());
				if (step.kind === "token") {
					watch.token();
					tokenIds.push(step.id);
					emit({ text: step.text, tokenId: step.id });
				}
				if (step.kind === "done") {
					if (step.text) emit({ text: step.text });
					return this.#finish(step, text, tokenIds, watch);
				}
			}
		});
	}

	#finish(
		{ finishReason, stopSequence, stopToken, usage }: Extract<WasmStep, { kind: "done" }>,
		text: string,
		tokenIds: number[],
		watch: Stopwatch,
	): GenerationResult {
		const timing = watch.timing(usage.promptTokens - usage.cachedTokens);
		this.#stats.generations += 1;
		this.#stats.promptTokens += usage.promptTokens;
		this.#stats.completionTokens += usage.completionTokens;
		this.#stats.lastTiming = timing;
		return { text, tokenIds, finishReason, stopSequence, stopToken, usage, timing };
	}

	evaluate(
		input: string | Uint32Array,
		kind: EvaluationKind,
		{ signal, onEvent }: CallContext<{ done: number; total: number }>,
	): Promise<Float32Array> {
		return this.#queue.run(signal, async (stop) => {
			const ids = typeof input === "string" ? this.#call((model) => model.tokenize(input, true)) : input;
			await abortsInTime(stop);
			this.#call((model) => model.startEvaluation(ids, kind));
			const size = kind === "nll" ? Math.max(ids.length - 1, 0) : ids.length * this.info.config.vocabSize;
			const values = allocate(size);
			let filled = 0;
			for (;;) {
				await yieldToEventLoop();
				throwIfAborted(stop);
				const step = await this.#finished((model) => model.evaluateStep());
				values.set(step.values, filled);
				filled += step.values.length;
				onEvent?.({ done: step.done, total: step.total });
				if (step.done >= step.total) return values;
			}
		});
	}

	async tokenize(text: string, addSpecialTokens: boolean): Promise<Uint32Array> {
		return this.#call((model) => model.tokenize(text, addSpecialTokens));
	}

	async detokenize(ids: Uint32Array, skipSpecialTokens: boolean): Promise<string> {
		return this.#call((model) => model.detokenize(ids, skipSpecialTokens));
	}

	async applyChatTemplate(messages: Message[], addGenerationPrompt: boolean): Promise<string> {
		return this.#call((model) => model.applyChatTemplate(messages, { addGenerationPrompt }));
	}

	async countTokens(input: string | Message[]): Promise<number> {
		if (typeof input !== "string") return this.#promptIds({ kind: "messages", messages: input }).length;
		return this.#call((model) => model.tokenize(input, true)).length;
	}

	async stats(): Promise<ModelStats> {
		const { memory } = this.#call((model) => model.info());
		return { ...this.#stats, memory: { ...memory, wasm: this.#instance.memory.buffer.byteLength } };
	}

	async dispose(): Promise<void> {
		await this.#queue.close(new AbortedError("The model was disposed of."));
		this.#instance.offLost(this.#endThreads);
		// What a trap left is not touched; what a lost GPU left is.
		if (this.#lost?.code !== "internal" && !this.#instance.lost) this.#model.free();
	}
}

/** Lets an abort through that came while the thread was busy, before an error of the input is told. */
async function abortsInTime(signal: AbortSignal): Promise<void> {
	await yieldToEventLoop();
	throwIfAborted(signal);
}

function allocate(length: number): Float32Array {
	try {
		return new Float32Array(length);
	} catch (error) {
		throw new OutOfMemoryError(
			`The result takes ${Math.ceil((length * 4) / 2 ** 20)} MiB, more than can be allocated. Evaluate fewer tokens at a time.`,
			{ cause: error },
		);
	}
}

/** Loads engines into this thread. */
export function localHost(platform: Platform): EngineHost {
	return {
		async load(source, options, { signal, onEvent }) {
			try {
				return await load(platform, source, options, signal, onEvent);
			} catch (error) {
				throw toSternaError(error);
			}
		},
	};
}

/** The devices to try, best first. */
function candidates(device: EngineLoadOptions["device"]): Device[] {
	return device === "auto" ? ["webgpu", "wasm"] : [device];
}

/** What another device may do better. */
const DEVICE_CODES: readonly SternaErrorCode[] = ["unsupported_browser", "out_of_memory", "device_lost"];

async function load(
	platform: Platform,
	source: Parameters<EngineHost["load"]>[0],
	{ device, ...options }: EngineLoadOptions,
	signal: AbortSignal | undefined,
	onProgress: ((progress: LoadProgress) => void) | undefined,
): Promise<Engine> {
	const fallbacks: Fallback[] = [];
	const devices = candidates(device);
	for (const candidate of devices) {
		try {
			const isChoice = devices.length > 1;
			const start = performance.now();
			const attempt = { platform, source, options, isChoice, fallbacks, signal, onProgress, start };
			return await (candidate === "webgpu" ? loadOnGpu(attempt) : loadOnCpu(attempt));
		} catch (error) {
			const known = toSternaError(error);
			if (candidate !== "webgpu" || devices.length === 1 || !DEVICE_CODES.includes(known.code)) throw known;
			fallbacks.push({ device: candidate, reason: known.message });
		}
	}
	throw new InternalError("No device was tried.");
}

/** One way to load a model. */
interface Attempt {
	platform: Platform;
	source: Parameters<EngineHost["load"]>[0];
	options: Omit<EngineLoadOptions, "device">;
	/** Whether another device is tried when this one cannot be used. */
	isChoice: boolean;
	fallbacks: Fallback[];
	signal: AbortSignal | undefined;
	onProgress: ((progress: LoadProgress) => void) | undefined;
	/** When it began. */
	start: number;
}

async function loadOnGpu(attempt: Attempt): Promise<Engine> {
	const { wasmUrl: _, threads: __, powerPreference, ...options } = attempt.options;
	throwIfAborted(attempt.signal);
	const found = await lookForGpu(powerPreference);
	const advice = 'Use device "wasm", or "auto" to fall back by itself.';
	if (found.kind === "none") throw new UnsupportedBrowserError(`${found.reason} ${advice}`);
	if (found.isSoftware && attempt.isChoice) {
		throw new UnsupportedBrowserError("WebGPU only has the processor, which is faster without it.");
	}
	const [{ instance }, checkpoint] = await open(attempt, 1);
	const create = () => instance.api.Loader.onGpu({ ...options, gpu: found.options });
	return loadInto(attempt, { instance, threads: 1, checkpoint, create });
}

async function loadOnCpu(attempt: Attempt): Promise<Engine> {
	const { wasmUrl: _, threads: wanted, powerPreference: __, ...options } = attempt.options;
	throwIfAborted(attempt.signal);
	const [{ instance, threads }, checkpoint] = await open(attempt, wanted);
	const create = async () => new instance.api.Loader({ ...options, threads });
	return loadInto(attempt, { instance, threads, checkpoint, create });
}

/** The module and the checkpoint, side by side. */
function open({ platform, source, options, signal }: Attempt, threads: EngineLoadOptions["threads"]) {
	return Promise.all([platform.instantiate(options.wasmUrl, threads), openSource(source, platform, signal)]);
}

/** What a model is made with. */
interface Means {
	instance: Instance;
	/** Threads that compute. */
	threads: number;
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

async function loadInto(
	{ platform, start, fallbacks, signal, onProgress }: Attempt,
	{ instance, threads, checkpoint, create }: Means,
): Promise<Engine> {
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
		bytes = await feedCheckpoint(loader, checkpoint, signal, onProgress);
		if (instance.lost) throw instance.lost;
	} catch (error) {
		const known = instance.explain(error);
		if (instance.lost) team?.terminate();
		else loader.free();
		throw known;
	}
	try {
		// Takes the loader along, whether it succeeds or not.
		model = await loader.finish();
	} catch (error) {
		const known = instance.explain(error);
		if (instance.lost) team.terminate();
		throw known;
	}
	const duration = performance.now() - start;
	const engine = new LocalEngine(instance, team, model, { bytes, duration }, fallbacks);
	onProgress?.({ phase: "ready", loadedBytes: bytes, totalBytes: bytes, fraction: 1 });
	return engine;
}
