// The data that the public API takes and gives. Times are milliseconds, sizes are bytes, unless a name or a
// comment says otherwise.

/**
 * Where a model comes from:
 *
 * - a URL (absolute, or relative to the page) of a `.gguf` file, of a `.safetensors` file, or of a folder that
 *   holds `config.json`, `tokenizer.json` and the weights as on Hugging Face; a file's companions, the other
 *   shards and the other parts of a split GGUF file are fetched from the same folder;
 * - several URLs: of one file or folder on several servers (they end in the same name), which are tried in order;
 *   or of all files of a model (they end in different names);
 * - `"hf:owner/repo[/file][@revision]"`, a model on the Hugging Face hub: without a file, the one that suits
 *   best is picked. Addresses of the hub's pages and files mean the same;
 * - a `File` or `Blob`; a list of `File`s (a model's files, picked or dropped together); a
 *   `FileSystemFileHandle` or `FileSystemDirectoryHandle`; the `DataTransfer` of a drop, also of a folder;
 * - the bytes of one file;
 * - in Node, a path of a file or a folder.
 */
export type ModelSource =
	| string
	| URL
	| readonly (string | URL)[]
	| Blob
	| readonly File[]
	| FileList
	| DataTransfer
	| DataTransferItemList
	| FileSystemHandle
	| ArrayBuffer
	| Uint8Array;

/** Something to know about a load that goes on. */
export interface LoadNotice {
	/**
	 * `"retrying"`: a request failed and is made again; `"mirror"`: the next address is tried;
	 * `"quota_exceeded"`: there is no room to store the model, which is loaded without; `"not_cached"`: it cannot
	 * be stored for another reason; `"stale"`: the server cannot be reached, and a stored copy is used that it may
	 * have a newer version of; `"repaired"`: a damaged part of a stored copy was downloaded again.
	 */
	code: "retrying" | "mirror" | "quota_exceeded" | "not_cached" | "stale" | "repaired";
	/** The same for people. */
	message: string;
}

/** How far a load is. */
export interface LoadProgress {
	/**
	 * `"prepare"`: finding out what to read; `"wait"`: another tab is downloading the same file, and the bytes
	 * are its; `"download"`: bytes come over the network and are turned into weights as they come; `"read"`: the
	 * same from disk or memory; `"load"`: everything is read and the model is put together; `"ready"`: the model
	 * can be used.
	 */
	phase: "prepare" | "wait" | "download" | "read" | "load" | "ready";
	/** The file that is being read. */
	file?: string;
	/** Bytes read so far, over all files. */
	loadedBytes: number;
	/** Bytes of all files, where the server or the file system tells. */
	totalBytes?: number;
	/** `loadedBytes / totalBytes`, 0 to 1, where the total is known; 1 in the phase `"ready"`. */
	fraction?: number;
	/** Bytes that need not come over the network, because they were stored before or are local. */
	cachedBytes: number;
	/** `cachedBytes / totalBytes`, where the total is known. */
	cachedFraction?: number;
	/** Bytes a second over the network in the last seconds; absent while nothing comes over it. */
	bytesPerSecond?: number;
	/** Milliseconds until everything is downloaded, at that rate. */
	remainingTime?: number;
	/** Whether the load was paused. */
	isPaused: boolean;
	/** Something that happened just now. */
	notice?: LoadNotice;
}

/** How a model's files are kept for later loads. */
export interface CacheOptions {
	/**
	 * Where. `"auto"` (the default) is the origin private file system (`"opfs"`), or the Cache API
	 * (`"cache-api"`) where files cannot be written in place: in a page (`worker: false`) and in old browsers.
	 * `"memory"` lasts as long as the page, and only with `worker: false`.
	 */
	backend?: "auto" | "opfs" | "cache-api" | "memory";
	/**
	 * Whether the server is asked if a stored file is still current (one `HEAD` request a file; a server that
	 * cannot be reached does not keep the model from loading). The default is `true`. Files of the hub are never
	 * asked for again: the hub's list of them tells.
	 */
	revalidate?: boolean;
	/**
	 * Whether a model that cannot be stored fails to load, with `quota_exceeded` where there is no room. The
	 * default is `false`: it is loaded anyway, with a notice in `onProgress`.
	 */
	required?: boolean;
	/** Asks the browser never to evict this site's storage (`navigator.storage.persist()`). */
	persist?: boolean;
}

/** How patient a load is with servers. */
export interface NetworkOptions {
	/** How many attempts in a row may bring nothing new before the load fails: 0 to 100, by default 5. */
	retries?: number;
	/** Milliseconds without a byte after which a connection is given up and made anew; by default 30 000. */
	stallTimeout?: number;
	/**
	 * The most connections for one file: 1 to 16, by default 4. A further one is made where the server gives
	 * parts of files and the ones before made the download faster.
	 */
	connections?: number;
}

/** How a model is loaded. */
export interface LoadOptions {
	/**
	 * What computes: `"webgpu"` the GPU, `"wasm"` the processor, in WebAssembly. `"auto"` (the default) takes a GPU
	 * where there is a real one that gives right results and has room for the model, else the processor;
	 * `model.info.device` tells which, and `model.info.fallbacks` why not the GPU. Where `"webgpu"` is asked for
	 * and cannot be had, the load rejects with `unsupported_browser`.
	 */
	device?: "auto" | "wasm" | "webgpu";
	/**
	 * Which GPU is asked for where a machine has several: the faster or the more economical one. The browser may
	 * decide otherwise. The default, `"auto"`, leaves it to the browser.
	 */
	powerPreference?: "auto" | "high-performance" | "low-power";
	/**
	 * Tokens that the context window holds, prompt and answer together; memory for the key-value cache is
	 * proportional to it. The default is the model's own maximum, at most 4096; a value above that maximum is
	 * limited to it, and `model.info.contextLength` tells the result.
	 */
	contextLength?: number;
	/**
	 * How keys and values are kept: as floats (`"f32"`), as halves (`"f16"`), or as integers with a scale for each
	 * head, of 16 bits (`"q16"`, the default: as small and exact as `"f16"`, and faster on the processor; a GPU keeps
	 * halves instead) or of 8 (`"q8"`, about half of that).
	 */
	kvCache?: KvCacheFormat;
	/**
	 * How the inputs of ternary layers are rounded. `"auto"` (the default) does as the model was trained to;
	 * `"int8"` and `"float"` override it.
	 */
	activations?: "auto" | "int8" | "float";
	/**
	 * How an embedding and LM head of floats are kept: as in the file (`"file"`), as halves (`"f16"`), or as
	 * bytes with a scale a row (`"q8"`), which is half the memory of `"f16"` and about twice as fast where the
	 * vocabulary is large, or as half bytes with a scale for each 32 (`"q4"`), which is about half of `"q8"` and
	 * costs some quality. `"auto"` (the default) is `"q8"` above 64 MiB in the file, else `"file"`.
	 */
	embedding?: "auto" | "file" | "f16" | "q8" | "q4";
	/**
	 * The byte order of I2_S tensors in a GGUF file: `"x86"` (the default), or `"arm"` for files that were
	 * converted on an ARM machine, which the file itself does not tell.
	 */
	i2sLayout?: "x86" | "arm";
	/**
	 * How many threads compute. `"auto"` (the default) is about as many as there are physical cores, at most 8, and
	 * leaves one to the page. A number asks for that many; more than the machine has cores are never started; while
	 * other programs hold them up so that fewer are faster, the others rest. Threads need a cross-origin isolated page
	 * ({@link capabilities} names the headers) and a worker: elsewhere the model computes in one thread. In Node
	 * `"auto"` is one thread; a process with more ends only after {@link Model.dispose}. Results do not depend on it;
	 * `model.info.threads` tells.
	 */
	threads?: "auto" | number;
	/** Called as the load advances, some twenty times a second at most, and at each change of phase. What it throws is
	 * reported as an uncaught error and does not end the load. */
	onProgress?: (progress: LoadProgress) => void;
	/** Stops the load; the promise rejects with an `aborted` error. What was stored of the model stays. */
	signal?: AbortSignal;
	/**
	 * Whether files from the network are kept, so that a later load needs no network, and a load that broke off
	 * goes on where it was. `true` (the default in browsers) is `{}`. Node keeps nothing.
	 */
	cache?: boolean | CacheOptions;
	/**
	 * SHA-256 digests that the files must have, by their names: `{ "model.gguf": "sha256-…" }`, in base64 as in
	 * HTML's `integrity`, or 64 hexadecimal digits; or one digest, for a model with one file of weights. A file
	 * with another digest fails the load with `integrity_mismatch`. Large files of the hub are checked in any case.
	 */
	integrity?: string | Record<string, string>;
	/** An access token for private and gated models on the hub. It is sent to `hfEndpoint` only. */
	hfToken?: string;
	/** The address of the Hugging Face hub, or of a mirror of it. The default is `https://huggingface.co`. */
	hfEndpoint?: string | URL;
	/** How patient the load is with servers. */
	network?: NetworkOptions;
	/**
	 * Fetches URLs in place of the global `fetch`, for example with credentials. It is called with a string and
	 * options, and runs where `loadModel` was called; bodies are passed on to the worker.
	 */
	fetch?: typeof fetch;
	/**
	 * Whether the model runs in a Web Worker, so that the page never waits for it. The default is `true` in
	 * browsers; in Node models run in-process and `true` is refused.
	 */
	worker?: boolean;
	/**
	 * The address of the folder with the package's `.wasm` files (ending in `/`), or of one of them, where they
	 * are not beside the package's scripts. The one that the browser can make the most of is fetched.
	 */
	wasmUrl?: string | URL;
}

/** Which model to estimate, and how it would be loaded. */
export type EstimateOptions = Pick<
	LoadOptions,
	| "contextLength"
	| "kvCache"
	| "activations"
	| "embedding"
	| "i2sLayout"
	| "cache"
	| "hfToken"
	| "hfEndpoint"
	| "network"
	| "fetch"
	| "worker"
	| "wasmUrl"
	| "signal"
>;

/** What loading a model would take, from the headers of its files. */
export interface Estimate {
	/** Whether it is a model that Sterna runs; `problem` says why not. */
	supported: boolean;
	problem?: string;
	/** The files, with what is stored of them. */
	files: { name: string; size?: number; cachedBytes: number }[];
	/** Bytes of all files, and how many of them would still have to be downloaded; absent where a server does not tell. */
	totalBytes?: number;
	downloadBytes?: number;
	/** Memory that the loaded model takes, by part, where it is known. */
	memory?: {
		weights: number;
		/** For `contextLength` tokens. */
		kvCache: number;
		/** The engine itself: code, tokenizer, buffers; a rule of thumb. */
		engine: number;
		total: number;
		/** What this device is thought to be able to give: WebAssembly's 4 GiB, or half of a small device's memory. */
		available: number;
	};
	/** Bytes that storing the rest of it takes, and that the browser still allows, where it tells. */
	storage?: { needed: number; available?: number };
	/** Whether the model can be expected to run here. */
	fits: boolean;
	/** What would help, in sentences for people; empty when all is well. */
	advice: string[];
	architecture: string;
	/** Weights. */
	parameters: number;
	contextLength?: number;
	/** How the weights are encoded in the files. */
	encodings: { encoding: string; tensors: number; parameters: number; bytes: number }[];
}

/** A model of which files are stored. */
export interface CachedModel {
	/** What it was loaded from: a URL, or an `hf:` reference with its revision. */
	source: string;
	files: CachedFile[];
	/** Bytes that are stored. */
	storedBytes: number;
	/** Bytes of all files that are known, where their sizes are. */
	totalBytes?: number;
	/** Whether every file that was begun is stored whole. */
	isComplete: boolean;
	/** When the first file was begun. */
	created: Date;
}

/** A stored file. */
export interface CachedFile {
	name: string;
	url: string;
	storedBytes: number;
	size?: number;
	isComplete: boolean;
	/** SHA-256 in hexadecimal that the file was checked against. */
	sha256?: string;
	/** Where it is stored. */
	backend: "opfs" | "cache-api" | "memory";
}

/** What a check of stored files found. */
export interface CacheReport {
	/** Files and bytes that were read. */
	files: number;
	bytes: number;
	/** Damaged blocks. The next load of the model downloads them again. */
	damaged: { source: string; file: string; bytes: number }[];
}

/** One message of a conversation. */
export interface Message {
	/** Who speaks. The model's chat template decides which roles it knows. */
	role: "system" | "user" | "assistant" | "tool" | (string & {});
	/** What is said. */
	content: string;
}

/**
 * How text is generated. What is left out takes the model's own default (its `generation_config.json`); where
 * the model has none, the likeliest token is always taken (temperature 0).
 */
export interface GenerationOptions {
	/** The most tokens to generate, at least 1. The default is the model's own, or what is left of the context window. */
	maxTokens?: number;
	/** 0 always takes the likeliest token (greedy); higher values vary more. 0 to 100. */
	temperature?: number;
	/** Samples among this many of the likeliest tokens; 0 means all of them. */
	topK?: number;
	/** Samples among the likeliest tokens whose probabilities add up to this. 0 to 1; 0 leaves the likeliest one only. */
	topP?: number;
	/** Leaves out tokens less likely than this fraction of the likeliest one. 0 to 1. */
	minP?: number;
	/** Makes tokens that are in the context already less likely; 1 changes nothing. 0.01 to 100. */
	repetitionPenalty?: number;
	/** Makes sampling repeatable: the same seed gives the same text. A whole number, 0 to 2⁵³ − 1; random when left out. */
	seed?: number;
	/** Ends the text before any of these strings, which are left out. */
	stop?: string | readonly string[];
	/** Ends the text at any of these token ids, besides the model's own end-of-sequence tokens. */
	stopTokens?: readonly number[];
	/** Goes on past the model's end-of-sequence tokens. */
	ignoreEos?: boolean;
	/** Stops the generation within one step; the stream rejects with an `aborted` error. */
	signal?: AbortSignal;
}

/** A piece of generated text. */
export interface Delta {
	/**
	 * The new text: always whole characters, so it is `""` for a token that ends inside a character, or while
	 * a stop string may be beginning.
	 */
	text: string;
	/** The token that was generated; absent on the last piece, which only gives text that was held back. */
	tokenId?: number;
}

/** How many tokens a generation took. */
export interface Usage {
	/** Tokens of the prompt. */
	promptTokens: number;
	/** Tokens of the prompt that the key-value cache still held, and that were not computed again. */
	cachedTokens: number;
	/** Tokens that were generated, with the one that ended the text. */
	completionTokens: number;
	/** Prompt and generated tokens together. */
	totalTokens: number;
}

/** How long a generation took, from when the model began with it (calls wait for their turn). */
export interface Timing {
	/** Milliseconds until the first token. */
	timeToFirstToken: number;
	/** Tokens of the prompt computed a second; cached tokens do not count. */
	prefillTps: number;
	/** Tokens generated a second, after the first one; 0 when there was no second one. */
	decodeTps: number;
	/** Milliseconds in all. */
	total: number;
}

/** A finished generation. */
export interface GenerationResult {
	/** The whole text, without the stop string or end-of-sequence token that ended it. */
	text: string;
	/** The generated tokens, without the one that ended the text. */
	tokenIds: number[];
	/** `"stop"`: at an end-of-sequence token, stop string or stop token; `"length"`: at `maxTokens` or the end of the context. */
	finishReason: "stop" | "length";
	/** The stop string that ended the text, if one did. */
	stopSequence?: string;
	/** The end-of-sequence or stop token that ended the text, if one did. */
	stopToken?: number;
	/** Token counts. */
	usage: Usage;
	/** Times and speeds. */
	timing: Timing;
}

/** A model's shape and variant, as its files say. */
export interface ModelConfig {
	/** The family, for example `"bitnet-b1.58"` or `"llama"`. */
	architecture: string;
	vocabSize: number;
	hiddenSize: number;
	intermediateSize: number;
	numLayers: number;
	numHeads: number;
	numKvHeads: number;
	headDim: number;
	/** Tokens that the model was trained to see at once. */
	maxContext: number;
	normEps: number;
	/** The feed-forward network's activation function. */
	activation: "relu2" | "silu";
	/** Rotary position embedding. */
	rope: { theta: number; scaling: { type: string; [parameter: string]: unknown } };
	/** Whether there are norms inside attention and feed-forward (BitNet b1.58 2B-4T). */
	subNorms: boolean;
	/** Whether queries and keys are normalised (Qwen3). */
	qkNorm: boolean;
	/** How the inputs of ternary layers are rounded. */
	linearInput: "int8" | "float";
}

/** A device, or some of its kernels, that were not used, though they would have been preferred. */
export interface Fallback {
	device: "webgpu";
	/** Why it was not used, for people to read. */
	reason: string;
}

/** What a loaded model is. */
/** How keys and values are kept: see {@link LoadOptions.kvCache}. */
export type KvCacheFormat = "f32" | "f16" | "q16" | "q8";

export interface ModelInfo {
	/** Shape and variant. */
	config: ModelConfig;
	/** Tokens that the context window holds. */
	contextLength: number;
	/** How keys and values are kept. */
	kvCache: KvCacheFormat;
	/** What computes. */
	device: "wasm" | "webgpu";
	/** The GPU that computes, as far as the browser tells. */
	adapter?: string;
	/** What was tried before this device, and why it could not be used. */
	fallbacks: Fallback[];
	/** The compute kernels in use, for example `"simd128"`. */
	kernel: string;
	/** How many threads compute, where other programs do not hold them up. */
	threads: number;
	/** Whether text can be given and got; without a tokenizer only token ids work. */
	hasTokenizer: boolean;
	/** Whether the model brings a chat template. */
	hasChatTemplate: boolean;
	/** Beginning- and end-of-sequence token ids. */
	specialTokens: { bos?: number; eos: number[] };
	/** The model's own sampling defaults. */
	defaults: {
		temperature?: number;
		topK?: number;
		topP?: number;
		minP?: number;
		repetitionPenalty?: number;
		maxNewTokens?: number;
	};
}

/** What a model takes and has done, at the moment of asking. */
export interface ModelStats {
	/**
	 * Bytes of memory: weights, key-value cache, and the wasm module's whole memory, in which both are unless a GPU
	 * computes.
	 */
	memory: { weights: number; kvCache: number; wasm: number };
	/** What the GPU was given to do since the model was loaded, where one computes. */
	gpu?: { dispatches: number; submits: number; bytesRead: number };
	/** How long loading took (milliseconds) and how much was read (bytes). */
	load: { duration: number; bytes: number };
	/** How many times the device was lost and the model was loaded onto another one, or onto the same one again. */
	rebuilds: number;
	/** Finished generations. */
	generations: number;
	/** Prompt tokens of all finished generations. */
	promptTokens: number;
	/** Generated tokens of all finished generations. */
	completionTokens: number;
	/** Times and speeds of the latest finished generation. */
	lastTiming?: Timing;
}

/** How well a model predicts a text. */
export interface PerplexityResult {
	/** exp of the mean loss: 1 is perfect, the vocabulary's size is chance. */
	perplexity: number;
	/** Mean negative log-likelihood a predicted token, in nats. */
	loss: number;
	/** The negative log-likelihood of each token from the second on, in nats. */
	losses: Float32Array;
	/** How many tokens were predicted: one less than the text has. */
	tokens: number;
}

/** Stopping and watching a long evaluation. */
export interface EvaluationOptions {
	/** Stops within one step; the promise rejects with an `aborted` error. */
	signal?: AbortSignal;
	/** Called after each step with the tokens done and in all; what it throws does not end the evaluation. */
	onProgress?: (progress: { done: number; total: number }) => void;
}

/** What this browser, or Node, offers to Sterna. */
export interface Capabilities {
	/** WebAssembly extensions. Sterna needs `simd`. */
	wasm: { simd: boolean; relaxedSimd: boolean; threads: boolean };
	/** Whether Web Workers exist. */
	workers: boolean;
	/** Whether the page is cross-origin isolated, without which it gets no shared memory and so no threads. */
	crossOriginIsolated: boolean;
	/** Whether the WebGPU interface exists. This version does not use it. */
	webgpu: boolean;
	/** The response headers that the page's server would have to add for cross-origin isolation; `{}` when none. */
	missingHeaders: Record<string, string>;
	/** Whether models run here at all; `reason` says why not. */
	supported: boolean;
	/** What is missing where `supported` is false. */
	reason?: string;
}
