// The messages between a page and its worker: numbered calls, their events, and their ends.

import type { EngineLoadOptions, EvaluationKind, Prompt } from "../engine.js";
import type { ErrorData } from "../errors.js";
import type { SourceSpec } from "../files/source.js";
import type { StoredName } from "../store/check.js";
import type {
	Delta,
	Estimate,
	GenerationResult,
	LoadProgress,
	Message,
	ModelInfo,
	ModelStats,
} from "../types.js";
import type { WasmGenerationOptions } from "../wasm-api.js";

/** What is loaded or estimated, and the port of the page's own `fetch`, where it has one. */
type LoadArgs = [source: SourceSpec, options: EngineLoadOptions, fetchPort?: MessagePort];

/** What a worker can be asked: arguments, the events on the way, and the result. */
export interface Calls {
	load: { args: LoadArgs; event: LoadProgress; result: ModelInfo };
	estimate: { args: LoadArgs; event: never; result: Estimate };
	generate: {
		args: [prompt: Prompt, options: WasmGenerationOptions];
		event: Delta;
		result: GenerationResult;
	};
	evaluate: {
		args: [input: string | Uint32Array, kind: EvaluationKind];
		event: { done: number; total: number };
		result: Float32Array;
	};
	tokenize: { args: [text: string, addSpecialTokens: boolean]; event: never; result: Uint32Array };
	detokenize: { args: [ids: Uint32Array, skipSpecialTokens: boolean]; event: never; result: string };
	applyChatTemplate: {
		args: [messages: Message[], addGenerationPrompt: boolean];
		event: never;
		result: string;
	};
	countTokens: { args: [input: string | Message[]]; event: never; result: number };
	stats: { args: []; event: never; result: ModelStats };
	/** Tells how many bytes of each file are damaged; events tell how many more were read. */
	checkStored: { args: [files: StoredName[]]; event: number; result: number[] };
}

export type Method = keyof Calls;

/** Page → worker. After `dispose` nothing follows. */
export type Request =
	| { [M in Method]: { id: number; type: "call"; method: M; args: Calls[M]["args"] } }[Method]
	| { id: number; type: "abort"; reason: string }
	/** Pauses a load, or lets it go on. */
	| { id: number; type: "pause"; isPaused: boolean }
	| { type: "dispose" };

/** Worker → page. Several events, then one result or error, for each call. */
export type Response =
	| { id: number; type: "event"; event: unknown }
	| { id: number; type: "result"; result: unknown }
	| { id: number; type: "error"; error: ErrorData }
	/** The model's information has changed. */
	| { type: "info"; info: ModelInfo }
	| { type: "disposed" };
