// The engine's interface: what the public model needs, whether the engine runs in this thread or in a
// worker. Arguments and results are plain data.

import type { AccessSettings } from "./files/access.js";
import type { SourceSpec } from "./files/source.js";
import type { Gate } from "./net/gate.js";
import type {
	Delta,
	Estimate,
	GenerationResult,
	LoadProgress,
	Message,
	ModelInfo,
	ModelStats,
} from "./types.js";
import type { GpuOptions, LoaderOptions, WasmGenerationOptions } from "./wasm-api.js";

/** How an engine loads. */
export interface EngineLoadOptions extends Omit<LoaderOptions, "threads" | "gpu"> {
	/** What computes; `"auto"` takes the first of the others that can. */
	device: Device | "auto";
	/** Which GPU, where there are several. */
	powerPreference: NonNullable<GpuOptions["powerPreference"]>;
	/** The address of the wasm modules, where they are not beside the scripts. */
	wasmUrl?: string;
	/** How many threads are wanted. */
	threads: "auto" | number;
	/** How files are got and kept. */
	access: AccessSettings;
}

/** What can compute. */
export type Device = "webgpu" | "wasm";

/** What text is generated from. */
export type Prompt =
	| { kind: "messages"; messages: Message[] }
	| { kind: "text"; text: string }
	| { kind: "ids"; ids: Uint32Array };

/** What an evaluation gives: rows of logits, or the negative log-likelihood of each token from the second on. */
export type EvaluationKind = "logits" | "nll";

/** Stopping and watching a call. */
export interface CallContext<Event> {
	signal?: AbortSignal;
	onEvent?: (event: Event) => void;
}

/** Pausing a load, and how it fetches. */
export interface LoadContext extends CallContext<LoadProgress> {
	gate?: Gate;
	/** In place of the global one. */
	fetch?: typeof fetch;
}

/** Starts engines. */
export interface EngineHost {
	load(source: SourceSpec, options: EngineLoadOptions, context: LoadContext): Promise<Engine>;
	/** What a load would take. */
	estimate(source: SourceSpec, options: EngineLoadOptions, context: LoadContext): Promise<Estimate>;
}

/** A loaded model. Long calls wait for their turn; the others do not. */
export interface Engine {
	/** Changes when the device is lost and another one takes its place. */
	readonly info: ModelInfo;
	/** Calls `listener` when {@link info} has changed. */
	watchInfo(listener: (info: ModelInfo) => void): void;
	generate(
		prompt: Prompt,
		options: WasmGenerationOptions,
		context: CallContext<Delta>,
	): Promise<GenerationResult>;
	/** Evaluates text or ids in one pass. */
	evaluate(
		input: string | Uint32Array,
		kind: EvaluationKind,
		context: CallContext<{ done: number; total: number }>,
	): Promise<Float32Array>;
	tokenize(text: string, addSpecialTokens: boolean): Promise<Uint32Array>;
	detokenize(ids: Uint32Array, skipSpecialTokens: boolean): Promise<string>;
	/** The prompt that a chat model is given for messages. */
	applyChatTemplate(messages: Message[], addGenerationPrompt: boolean): Promise<string>;
	/** How many tokens messages or a text are. */
	countTokens(input: string | Message[]): Promise<number>;
	stats(): Promise<ModelStats>;
	/** Aborts what runs and frees everything. */
	dispose(): Promise<void>;
}
