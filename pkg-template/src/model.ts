/// <reference lib="esnext.disposable" preserve="true" />
// The model that the package's users hold: checks arguments and turns them into calls of the engine.

import { watcher } from "./callbacks.js";
import { defined } from "./defined.js";
import type { Engine, Prompt } from "./engine.js";
import { InvalidArgumentError } from "./errors.js";
import { ChatStream } from "./stream.js";
import type {
	EvaluationOptions,
	GenerationOptions,
	Message,
	ModelInfo,
	ModelStats,
	PerplexityResult,
} from "./types.js";
import {
	abortSignal,
	checkOptions,
	checkText,
	checkTokenIds,
	either,
	integer,
	listOf,
	number,
	ofType,
	tokenId,
} from "./validate.js";
import type { WasmGenerationOptions } from "./wasm-api.js";

const GENERATION_RULES = {
	maxTokens: integer(1, 2 ** 32 - 1),
	temperature: number(0, 100),
	topK: integer(0, 2 ** 32 - 1),
	topP: number(0, 1),
	minP: number(0, 1),
	repetitionPenalty: number(0.01, 100),
	seed: integer(0),
	stop: either(ofType("string"), listOf(ofType("string"))),
	stopTokens: listOf(tokenId),
	ignoreEos: ofType("boolean"),
	signal: abortSignal,
};

const EVALUATION_RULES = { signal: abortSignal, onProgress: ofType("function") };

/** Options as the engine takes them: no functions, no `undefined`, a seed in any case. */
function engineOptions({ signal: _, stop, ...options }: GenerationOptions): WasmGenerationOptions {
	return {
		seed: crypto.getRandomValues(new Uint32Array(1))[0],
		...defined(options),
		stop: typeof stop === "string" ? [stop] : [...(stop ?? [])],
	};
}

function checkMessages(call: string, messages: readonly Message[]): Message[] {
	if (!Array.isArray(messages)) {
		throw new InvalidArgumentError(`${call}: messages must be an array of { role, content }.`);
	}
	// A hole in the array counts as a message that is missing.
	return Array.from(messages, (message: Message, i) => {
		if (typeof message?.role !== "string" || typeof message.content !== "string") {
			throw new InvalidArgumentError(
				`${call}: message ${i} must have a 'role' and a 'content', both strings.`,
			);
		}
		return { role: message.role, content: message.content };
	});
}

/**
 * A loaded model, made by {@link loadModel}.
 *
 * Generations and evaluations run one after another, in the order of the calls; the other methods answer in
 * between. Every method that fails throws, or rejects with, a {@link SternaError}; the model stays usable
 * unless the error's code is `internal`. After {@link Model.dispose} every call fails.
 */
export class Model implements AsyncDisposable {
	readonly #engine: Engine;
	#isDisposed = false;

	/** @internal */
	constructor(engine: Engine) {
		this.#engine = engine;
	}

	/** What the model is: shape, context length, tokenizer, defaults, device. */
	get info(): ModelInfo {
		return this.#engine.info;
	}

	/**
	 * Continues a conversation: the model's chat template makes the prompt.
	 *
	 * ```ts
	 * for await (const { text } of model.chat([{ role: "user", content: "Hi" }])) show(text);
	 * ```
	 *
	 * @param messages the conversation so far, oldest first
	 * @returns a stream of pieces of text that is also a promise of the result
	 * @throws InvalidArgumentError at once for wrong or unknown options; in the stream: `unsupported_format` for
	 * a model without tokenizer or chat template, `invalid_argument` for messages that the template refuses,
	 * `context_overflow` for a prompt that does not fit, `aborted`
	 */
	chat(messages: readonly Message[], options: GenerationOptions = {}): ChatStream {
		const checked = checkMessages("chat", messages);
		if (checked.length === 0) throw new InvalidArgumentError("chat: there must be at least one message.");
		return this.#generate("chat", { kind: "messages", messages: checked }, options);
	}

	/**
	 * Continues a text, or token ids, without a chat template. A text gets the model's beginning-of-sequence
	 * token in front, as the model expects.
	 *
	 * @param prompt text, or token ids, which work without a tokenizer too
	 * @returns a stream of pieces of text that is also a promise of the result
	 * @throws as {@link Model.chat}
	 */
	generate(prompt: string | ArrayLike<number>, options: GenerationOptions = {}): ChatStream {
		const input: Prompt =
			typeof prompt === "string"
				? { kind: "text", text: prompt }
				: { kind: "ids", ids: checkTokenIds("generate", prompt) };
		return this.#generate("generate", input, options);
	}

	#generate(call: string, prompt: Prompt, options: GenerationOptions): ChatStream {
		const engine = this.#use();
		checkOptions(call, options, GENERATION_RULES);
		return new ChatStream(
			(signal, onEvent) => engine.generate(prompt, engineOptions(options), { signal, onEvent }),
			options.signal,
		);
	}

	/**
	 * The token ids of a text.
	 *
	 * @param options.addSpecialTokens whether to add what the model expects around a text, such as a
	 * beginning-of-sequence token; `true` when left out
	 * @throws `unsupported_format` for a model without tokenizer
	 */
	async tokenize(text: string, options: { addSpecialTokens?: boolean } = {}): Promise<Uint32Array> {
		checkOptions("tokenize", options, { addSpecialTokens: ofType("boolean") });
		return this.#use().tokenize(checkText("tokenize", text), options.addSpecialTokens ?? true);
	}

	/**
	 * The text of token ids.
	 *
	 * @param options.skipSpecialTokens whether to leave special tokens out; `false` when left out
	 * @throws `unsupported_format` for a model without tokenizer, `invalid_argument` for ids outside the vocabulary
	 */
	async detokenize(ids: ArrayLike<number>, options: { skipSpecialTokens?: boolean } = {}): Promise<string> {
		checkOptions("detokenize", options, { skipSpecialTokens: ofType("boolean") });
		return this.#use().detokenize(checkTokenIds("detokenize", ids), options.skipSpecialTokens ?? false);
	}

	/**
	 * How many tokens a prompt takes: of messages with the chat template around them, or of a text with the
	 * tokens that {@link Model.generate} adds.
	 *
	 * @throws `unsupported_format` for a model without tokenizer or, given messages, without chat template
	 */
	async countTokens(input: string | readonly Message[]): Promise<number> {
		const checked = typeof input === "string" ? input : checkMessages("countTokens", input);
		return this.#use().countTokens(checked);
	}

	/**
	 * The prompt that {@link Model.chat} gives the model for messages.
	 *
	 * @param options.addGenerationPrompt whether to end with the beginning of the assistant's answer; `true`
	 * when left out
	 * @throws `unsupported_format` for a model without chat template, `invalid_argument` for messages that the
	 * template refuses
	 */
	async applyChatTemplate(
		messages: readonly Message[],
		options: { addGenerationPrompt?: boolean } = {},
	): Promise<string> {
		checkOptions("applyChatTemplate", options, { addGenerationPrompt: ofType("boolean") });
		const checked = checkMessages("applyChatTemplate", messages);
		return this.#use().applyChatTemplate(checked, options.addGenerationPrompt ?? true);
	}

	/**
	 * The model's raw predictions: one row a token, of as many unnormalised log-probabilities (f32) as the
	 * vocabulary has tokens. Row i predicts the token after `ids[i]`. All rows share one buffer of
	 * `ids.length · vocabSize · 4` bytes.
	 *
	 * @throws `context_overflow` for more ids than the context holds, `invalid_argument` for ids outside the
	 * vocabulary, `out_of_memory`, `aborted`
	 */
	async logits(ids: ArrayLike<number>, options: EvaluationOptions = {}): Promise<Float32Array[]> {
		checkOptions("logits", options, EVALUATION_RULES);
		const input = checkTokenIds("logits", ids);
		const { signal, onProgress } = options;
		const values = await this.#use().evaluate(input, "logits", { signal, onEvent: watcher(onProgress) });
		const { vocabSize } = this.info.config;
		return Array.from(input, (_, row) => values.subarray(row * vocabSize, (row + 1) * vocabSize));
	}

	/**
	 * How well the model predicts a text, or token ids. A text gets the model's beginning-of-sequence token in
	 * front. A text longer than the context window is taken in windows of its length, each starting afresh;
	 * every token but the first is predicted once.
	 *
	 * @throws `invalid_argument` for a text of fewer than two tokens, `aborted`
	 */
	async perplexity(
		input: string | ArrayLike<number>,
		options: EvaluationOptions = {},
	): Promise<PerplexityResult> {
		checkOptions("perplexity", options, EVALUATION_RULES);
		const checked = typeof input === "string" ? input : checkTokenIds("perplexity", input);
		const { signal, onProgress } = options;
		const losses = await this.#use().evaluate(checked, "nll", { signal, onEvent: watcher(onProgress) });
		if (losses.length === 0) {
			throw new InvalidArgumentError("perplexity: the text must have at least two tokens.");
		}
		const loss = losses.reduce((sum, each) => sum + each, 0) / losses.length;
		return { perplexity: Math.exp(loss), loss, losses, tokens: losses.length };
	}

	/** What the model takes and has done so far. */
	async stats(): Promise<ModelStats> {
		return this.#use().stats();
	}

	/** Aborts what is running and frees the model's memory. Disposing twice does nothing. */
	async dispose(): Promise<void> {
		if (this.#isDisposed) return;
		this.#isDisposed = true;
		await this.#engine.dispose();
	}

	/** As {@link Model.dispose}, for `await using`. */
	async [Symbol.asyncDispose](): Promise<void> {
		await this.dispose();
	}

	#use(): Engine {
		if (this.#isDisposed) throw new InvalidArgumentError("The model was disposed of: load it again.");
		return this.#engine;
	}
}
