// The engine in this thread, over the wasm module: a loop of short steps that gives the event loop a turn
// between any two, so that aborts get through.

import type { CallContext, Engine, EvaluationKind, Prompt } from "./engine.js";
import {
	AbortedError,
	DeviceLostError,
	InvalidArgumentError,
	OutOfMemoryError,
	type SternaError,
	throwIfAborted,
} from "./errors.js";
import type { Instance } from "./instances.js";
import { JobQueue } from "./job-queue.js";
import type { Team } from "./threads/team.js";
import type { Delta, Fallback, GenerationResult, Message, ModelInfo, ModelStats, Timing } from "./types.js";
import type { WasmGenerationOptions, WasmModel, WasmStep } from "./wasm-api.js";
import { yieldToEventLoop } from "./yield.js";

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

/** A model that was loaded, and what it runs in. */
export interface LoadedModel {
	instance: Instance;
	team: Team;
	model: WasmModel;
	/** What was tried before its device. */
	fallbacks: Fallback[];
	/** Bytes that were read, and milliseconds that it took. */
	load: ModelStats["load"];
}

/** Loads the model once more, onto another device. */
export type Reload = (signal: AbortSignal) => Promise<LoadedModel>;

/** How many times a call goes on after its device was lost: a device that is lost again and again is of no use. */
const MAX_REBUILDS = 2;

function describe({ model, fallbacks }: LoadedModel): ModelInfo {
	const { memory: _, gpu: __, rejectedKernels, ...info } = model.info();
	const rejected = rejectedKernels.map((reason): Fallback => ({ device: "webgpu", reason }));
	return { ...info, fallbacks: [...fallbacks, ...rejected] };
}

/** A loaded model in this thread. */
export class LocalEngine implements Engine {
	#info: ModelInfo;
	#loaded: LoadedModel;
	readonly #reload: Reload | undefined;
	readonly #stats: Omit<ModelStats, "memory" | "gpu">;
	readonly #queue = new JobQueue();
	#endThreads = () => {};
	#onInfo: ((info: ModelInfo) => void) | undefined;
	/** Why nothing works any more. */
	#lost: SternaError | undefined;
	/** Why the next computation has to get another device first. */
	#deviceLost: SternaError | undefined;

	/** @param reload gets the model again when its device is lost; left out where it cannot be got */
	constructor(loaded: LoadedModel, reload: Reload | undefined) {
		this.#loaded = loaded;
		this.#reload = reload;
		this.#stats = { load: loaded.load, generations: 0, promptTokens: 0, completionTokens: 0, rebuilds: 0 };
		this.#info = describe(loaded);
		this.#guard(loaded);
	}

	get info(): ModelInfo {
		return this.#info;
	}

	watchInfo(listener: (info: ModelInfo) => void): void {
		this.#onInfo = listener;
	}

	/** Ends the model's threads when its instance is lost. */
	#guard({ instance, team }: LoadedModel): void {
		// Holds on to the threads only: a model that its user has forgotten can still be collected and freed.
		this.#endThreads = () => team.terminate();
		instance.onLost(this.#endThreads);
	}

	/** Calls into wasm; after a trap, in this model or in another of its instance, every call fails as that one did. */
	#call<T>(use: (model: WasmModel) => T): T {
		const { instance, model } = this.#loaded;
		const lost = this.#lost ?? instance.lost;
		if (lost) throw lost;
		try {
			return use(model);
		} catch (error) {
			const known = instance.explain(error);
			if (known.code === "device_lost") this.#deviceLost = known;
			if (known.code === "internal") {
				this.#lost = known;
				if (!instance.lost) this.#endThreads();
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

	/** Does work that can go on, or begin anew, on another device when its device is lost. */
	async #surviving<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
		for (let rebuilds = 0; ; rebuilds += 1) {
			if (this.#deviceLost) await this.#rebuild(this.#deviceLost, signal);
			try {
				return await work();
			} catch (error) {
				if (!this.#deviceLost || rebuilds === MAX_REBUILDS) throw error;
			}
		}
	}

	/** Loads the model onto another device. */
	async #rebuild(lost: SternaError, signal: AbortSignal): Promise<void> {
		if (!this.#reload) throw lost;
		let loaded: LoadedModel;
		try {
			loaded = await this.#reload(signal);
		} catch (error) {
			throwIfAborted(signal);
			throw new DeviceLostError(`${lost.message}. Loading it once more failed: ${(error as Error).message}`, {
				cause: error,
			});
		}
		const old = this.#loaded;
		const info = describe(loaded);
		if (!isSameModel(old, this.#info, loaded, info)) {
			loaded.model.free();
			await loaded.team.end();
			throw new DeviceLostError(
				`${lost.message}. It was not replaced by itself, since the files have changed since they were loaded.`,
			);
		}
		old.instance.offLost(this.#endThreads);
		this.#loaded = loaded;
		this.#guard(loaded);
		this.#deviceLost = undefined;
		this.#stats.rebuilds += 1;
		this.#info = info;
		this.#onInfo?.(info);
		if (!old.instance.lost) old.model.free();
		await old.team.end();
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
			const tokenIds: number[] = [];
			let text = "";
			const emit = (delta: Delta) => {
				text += delta.text;
				onEvent?.(delta);
			};
			const generate = async () => {
				// On another device than before, the tokens so far are run again and not given again.
				const generated = [...tokenIds];
				this.#call((model) => model.startGeneration(ids, { ...options, newText, generated }));
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
			};
			return this.#surviving(stop, generate).catch((error) => {
				throwIfAborted(stop, text);
				throw error;
			});
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
			return this.#surviving(stop, async () => {
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
		const { memory, gpu } = this.#call((model) => model.info());
		const wasm = this.#loaded.instance.memory.buffer.byteLength;
		return { ...this.#stats, memory: { ...memory, wasm }, gpu };
	}

	async dispose(): Promise<void> {
		await this.#queue.close(new AbortedError("The model was disposed of."));
		const { instance, model, team } = this.#loaded;
		instance.offLost(this.#endThreads);
		// What a trap left is not touched; what a lost GPU left is.
		if (this.#lost || instance.lost) return;
		model.free();
		await team.end();
	}
}

/** Whether what was loaded anew is what was loaded before, as far as can be told. */
function isSameModel(old: LoadedModel, oldInfo: ModelInfo, loaded: LoadedModel, info: ModelInfo): boolean {
	return (
		old.load.bytes === loaded.load.bytes && JSON.stringify(oldInfo.config) === JSON.stringify(info.config)
	);
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
