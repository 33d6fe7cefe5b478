// The engine in this thread, over the wasm module: a loop of short steps that gives the event loop a turn
// between any two, so that aborts get through.

import type { CallContext, Engine, EvaluationKind, Prompt } from "./engine.js";
import {
	AbortedError,
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

/** A loaded model in this thread. */
export class LocalEngine implements Engine {
	readonly info: ModelInfo;
	readonly #model: WasmModel;
	readonly #instance: Instance;
	readonly #stats: Omit<ModelStats, "memory" | "gpu">;
	readonly #queue = new JobQueue();
	readonly #team: Team;
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
		this.#team = team;
		this.#stats = { load, generations: 0, promptTokens: 0, completionTokens: 0 };
		// Holds on to the threads only: a model that its user has forgotten can still be collected and freed.
		this.#endThreads = () => team.terminate();
		instance.onLost(this.#endThreads);
		const { memory: _, gpu: __, rejectedKernels, ...info } = model.info();
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
		const { memory, gpu } = this.#call((model) => model.info());
		return { ...this.#stats, memory: { ...memory, wasm: this.#instance.memory.buffer.byteLength }, gpu };
	}

	async dispose(): Promise<void> {
		await this.#queue.close(new AbortedError("The model was disposed of."));
		this.#instance.offLost(this.#endThreads);
		// What a trap left is not touched; what a lost GPU left is.
		if (this.#lost?.code === "internal" || this.#instance.lost) return;
		this.#model.free();
		await this.#team.end();
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
