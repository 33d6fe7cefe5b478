// The wasm module's interface, as the crate's `web` module exports it. Everything that this package knows
// about the engine is here, so that the rest can be tested against a fake.

import type { KvCacheFormat, Message, ModelConfig } from "./types.js";

export interface LoaderOptions {
	contextLength?: number;
	kvCache?: KvCacheFormat;
	activations?: "auto" | "int8" | "float";
	embedding?: "auto" | "file" | "f16" | "q8" | "q4";
	i2sLayout?: "x86" | "arm";
	/** How many threads compute; each but the calling one needs a seat. */
	threads?: number;
	/** How a GPU is opened, for {@link WasmApi.Loader.onGpu}. */
	gpu?: GpuOptions;
}

export interface GpuOptions {
	powerPreference?: "auto" | "high-performance" | "low-power";
	/** Whether devices are asked for the feature of this name on the way. */
	subgroups?: boolean;
}

/** What a checkpoint's headers say. Sizes are bytes. */
export interface InspectReport {
	format: "gguf" | "safetensors";
	architecture: string;
	supported: boolean;
	/** Why the model is not supported. */
	problem?: string;
	config?: ModelConfig;
	parameters: number;
	encodings: { encoding: string; tensors: number; parameters: number; bytes: number }[];
	fileBytes: number;
	/** Names and values; long values are shortened. */
	metadata: [name: string, value: string][];
	tensors: { name: string; shape: number[]; encoding: string; bytes: number; offset: number }[];
	/** What running the model takes. */
	memory?: { weights: number; kvCache: number; contextLength: number; total: number };
}

/** Turns the bytes of a checkpoint's files into a model. Files come one after another, side files first. */
export interface WasmLoader {
	beginFile(name: string, size?: number): void;
	push(bytes: Uint8Array): void;
	/** Called between pushes: a promise where a GPU has to catch up before the next one. */
	catchUp(): Promise<void> | undefined;
	endFile(): void;
	/** Leaves out the rest of the open file, whose header was read; what follows can only be inspected. */
	skipRest(): void;
	headerReady(): boolean;
	shards(): string[];
	inspect(): InspectReport;
	progress(): { tensorsDone: number; tensorsTotal: number };
	/** A place for one more thread. */
	threadSeat(): number;
	/** A promise where the model runs on a GPU. */
	finish(): WasmModel | Promise<WasmModel>;
	free(): void;
}

export interface WasmModelInfo {
	config: ModelConfig;
	contextLength: number;
	kvCache: KvCacheFormat;
	hasTokenizer: boolean;
	hasChatTemplate: boolean;
	specialTokens: { bos?: number; eos: number[] };
	defaults: {
		temperature?: number;
		topK?: number;
		topP?: number;
		minP?: number;
		repetitionPenalty?: number;
		maxNewTokens?: number;
	};
	memory: { weights: number; kvCache: number };
	device: "wasm" | "webgpu";
	/** The GPU, as far as the browser tells. */
	adapter?: string;
	kernel: string;
	/** What the GPU was given to do so far. */
	gpu?: { dispatches: number; submits: number; bytesRead: number };
	/** Kernels of the GPU that gave wrong results, and how. */
	rejectedKernels: string[];
	threads: number;
}

/** Sampling and stopping, as the crate takes them. */
export interface WasmGenerationOptions {
	maxTokens?: number;
	temperature?: number;
	topK?: number;
	topP?: number;
	minP?: number;
	repetitionPenalty?: number;
	seed?: number;
	stop?: string[];
	stopTokens?: readonly number[];
	ignoreEos?: boolean;
	/** The result is a text of its own, as an answer is, and does not continue the prompt's. */
	newText?: boolean;
	/** Tokens of the result that an earlier run gave, before its device was lost. They are not given again. */
	generated?: readonly number[];
}

export type WasmStep =
	| { kind: "prefill"; done: number; total: number }
	| { kind: "token"; id: number; text: string }
	| {
			kind: "done";
			text: string;
			finishReason: "stop" | "length";
			stopSequence?: string;
			stopToken?: number;
			usage: { promptTokens: number; completionTokens: number; cachedTokens: number; totalTokens: number };
	  };

export interface WasmEvaluationStep {
	done: number;
	total: number;
	values: Float32Array;
}

/** A loaded model: one job at a time, in short steps. */
export interface WasmModel {
	info(): WasmModelInfo;
	tokenize(text: string, addSpecialTokens: boolean): Uint32Array;
	detokenize(ids: Uint32Array, skipSpecialTokens: boolean): string;
	applyChatTemplate(messages: Message[], options: { addGenerationPrompt: boolean }): string;
	encodeChat(messages: Message[], options: { addGenerationPrompt: boolean }): Uint32Array;
	startGeneration(promptIds: Uint32Array, options: WasmGenerationOptions): void;
	/** A promise where the model runs on a GPU; until it ends, no other step may be asked for. */
	step(): WasmStep | Promise<WasmStep>;
	startEvaluation(ids: Uint32Array, what: "logits" | "nll"): void;
	/** As {@link step}. */
	evaluateStep(): WasmEvaluationStep | Promise<WasmEvaluationStep>;
	resetCache(): void;
	free(): void;
}

export interface WasmApi {
	default(input: { module_or_path: WebAssembly.Module; memory?: WebAssembly.Memory }): Promise<{
		memory: WebAssembly.Memory;
	}>;
	version(): string;
	Loader: {
		/** Of models that run on the CPU. */
		new (options: LoaderOptions): WasmLoader;
		/** Of models that run on the GPU, once one is open. */
		onGpu(options: LoaderOptions): Promise<WasmLoader>;
	};
	Model: unknown;
	/** Puts a fresh instance in the place of the present one, whose objects may not be used any more. */
	__wbg_reset_state(): void;
}

/** The bindings of a build whose memory is shared by threads. */
export interface SharedWasmApi extends WasmApi {
	/** Enters the module in another thread, with a stack of its own. */
	initSync(start: { module: WebAssembly.Module; memory: WebAssembly.Memory; thread_stack_size: number }): {
		/** Gives back the thread's stack. */
		__wbindgen_thread_destroy(): void;
	};
	/** Works at a seat until the model is freed. */
	serveThread(seat: number): void;
	/** Tells that the thread at a seat trapped in {@link serveThread}. */
	abandonThread(seat: number): void;
}
