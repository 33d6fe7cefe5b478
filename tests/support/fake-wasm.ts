// A stand-in for the wasm module: it "loads" any bytes, and its model repeats its prompt. Tokens are UTF-16
// code units, so that what goes in and out can be read in the tests.

import { Instance, Instances } from "../../pkg-template/src/instances.js";
import type { Platform } from "../../pkg-template/src/platform.js";
import type { ThreadReport } from "../../pkg-template/src/threads/thread.js";
import type { Message } from "../../pkg-template/src/types.js";
import type {
	InspectReport,
	LoaderOptions,
	WasmApi,
	WasmGenerationOptions,
	WasmLoader,
	WasmModel,
	WasmStep,
} from "../../pkg-template/src/wasm-api.js";

export const VOCAB = 256;

/** An error as the crate throws it. */
export function wasmError(code: string, message: string): Error {
	return Object.assign(new Error(message), { code });
}

/** What the fake has been asked, for tests to look at. */
export interface FakeLog {
	files: { name: string; size: number | undefined; bytes: number }[];
	freed: string[];
	/** Seats of the threads that were started, and how many were ended from outside. */
	seats: number[];
	terminated: number;
	/** What happens when a model is freed. */
	whenFreed: (() => void)[];
	/** How many times the module was instantiated, and how many times anew in the place of a lost one. */
	instantiated: number;
	resets: number;
	loaderOptions?: LoaderOptions;
	/** What the GPU is said not to run right, and why it is refused altogether. */
	rejectedKernels?: string[];
	gpuError?: Error;
	/** What inspecting says of memory. */
	memory?: InspectReport["memory"];
}

class FakeLoader implements WasmLoader {
	#current: FakeLog["files"][number] | undefined;
	#index: string | undefined;
	#seats = 0;

	constructor(
		readonly log: FakeLog,
		options: LoaderOptions,
	) {
		log.loaderOptions = options;
	}

	beginFile(name: string, size?: number): void {
		this.#current = { name, size, bytes: 0 };
		this.log.files.push(this.#current);
	}

	push(bytes: Uint8Array): void {
		if (!this.#current) throw wasmError("invalid_argument", "no file");
		this.#current.bytes += bytes.length;
		const text = new TextDecoder().decode(bytes.subarray(0, 1000));
		if (this.#current.name.endsWith(".index.json")) this.#index = text;
		if (text.includes("CORRUPT")) throw wasmError("corrupt_file", "the file is corrupt");
		if (text.includes("DEEP")) throw new RangeError("Maximum call stack size exceeded");
		if (text.includes("PANIC")) throw new WebAssembly.RuntimeError("unreachable");
	}

	catchUp(): undefined {}

	endFile(): void {
		this.#current = undefined;
	}

	skipRest(): void {
		this.#current = undefined;
	}

	headerReady(): boolean {
		return (this.#current?.bytes ?? 0) >= 64;
	}

	shards(): string[] {
		if (!this.#index) return [];
		return [...new Set(Object.values<string>(JSON.parse(this.#index).weight_map))];
	}

	inspect(): InspectReport {
		const fileBytes = this.log.files.reduce((sum, file) => sum + file.bytes, 0);
		return {
			format: "gguf",
			architecture: "fake",
			supported: true,
			parameters: 1,
			encodings: [],
			fileBytes,
			metadata: [],
			tensors: [],
			memory: this.log.memory,
		};
	}

	progress() {
		return { tensorsDone: 0, tensorsTotal: 0 };
	}

	threadSeat(): number {
		return 100 + this.#seats++;
	}

	finish(): WasmModel {
		const { gpuError, loaderOptions } = this.log;
		if (gpuError && loaderOptions?.gpu) throw gpuError;
		return new FakeModel(this.log);
	}

	free(): void {
		this.log.freed.push("loader");
	}
}

const encode = (text: string) => Uint32Array.from(text, (character) => character.charCodeAt(0));
const decode = (ids: Uint32Array) => String.fromCharCode(...ids);

class FakeModel implements WasmModel {
	#job: { prompt: Uint32Array; options: WasmGenerationOptions; done: number; prefilled: boolean } | undefined;
	#evaluation: { ids: Uint32Array; what: "logits" | "nll"; done: number } | undefined;

	constructor(readonly log: FakeLog) {}

	info(): ReturnType<WasmModel["info"]> {
		return {
			config: { architecture: "fake", vocabSize: VOCAB } as ReturnType<WasmModel["info"]>["config"],
			contextLength: 1000,
			kvCache: "f32",
			hasTokenizer: true,
			hasChatTemplate: true,
			specialTokens: { eos: [0] },
			defaults: {},
			memory: { weights: 1, kvCache: 2 },
			device: this.log.loaderOptions?.gpu ? "webgpu" : "wasm",
			kernel: "fake",
			rejectedKernels: this.log.rejectedKernels ?? [],
			threads: this.log.loaderOptions?.threads ?? 1,
		};
	}

	tokenize(text: string): Uint32Array {
		return encode(text);
	}

	detokenize(ids: Uint32Array): string {
		return decode(ids);
	}

	applyChatTemplate(messages: Message[]): string {
		return messages.map(({ role, content }) => `${role}:${content}`).join("\n");
	}

	encodeChat(messages: Message[]): Uint32Array {
		return encode(this.applyChatTemplate(messages));
	}

	startGeneration(prompt: Uint32Array, options: WasmGenerationOptions): void {
		if (prompt.length > 1000) throw wasmError("context_overflow", "the prompt is too long");
		this.#job = { prompt, options, done: 0, prefilled: false };
	}

	step(): WasmStep {
		const job = this.#job;
		if (!job) throw wasmError("invalid_argument", "no job");
		const total = job.prompt.length;
		if (!job.prefilled) {
			job.prefilled = true;
			return { kind: "prefill", done: total, total };
		}
		const limit = job.options.maxTokens ?? total;
		if (job.done < limit) {
			const id = job.prompt[job.done % total]!;
			job.done += 1;
			if (id === 33) throw new WebAssembly.RuntimeError("unreachable");
			return { kind: "token", id, text: decode(Uint32Array.of(id)) };
		}
		this.#job = undefined;
		return {
			kind: "done",
			text: "",
			finishReason: "length",
			usage: { promptTokens: total, completionTokens: limit, cachedTokens: 0, totalTokens: total + limit },
		};
	}

	startEvaluation(ids: Uint32Array, what: "logits" | "nll"): void {
		this.#evaluation = { ids, what, done: 0 };
	}

	evaluateStep() {
		const { ids, what, done } = this.#evaluation!;
		this.#evaluation!.done += 1;
		const width = what === "logits" ? VOCAB : done === 0 ? 0 : 1;
		const value = what === "logits" ? done : 2;
		return { done: done + 1, total: ids.length, values: new Float32Array(width).fill(value) };
	}

	resetCache(): void {}

	free(): void {
		this.log.freed.push("model");
		for (const act of this.log.whenFreed) act();
	}
}

/** How the threads of a fake module start. */
export type FakeStart = ThreadReport | { type: "error"; message: string };

/** A platform with a fake module that grants `threads` threads, and the log of what it was asked. */
export function fakeWasm(threads = 1, start: FakeStart = { type: "ready" }) {
	const log: FakeLog = {
		...{ files: [], freed: [], seats: [], whenFreed: [] },
		...{ terminated: 0, instantiated: 0, resets: 0 },
	};
	class Loader extends FakeLoader {
		constructor(options: LoaderOptions) {
			super(log, options);
		}
		static async onGpu(options: LoaderOptions) {
			return new Loader(options);
		}
	}
	const memory = { buffer: new ArrayBuffer(8) };
	const api = {
		default: async () => ({ memory }),
		version: () => "0",
		Loader,
		Model: FakeModel,
		__wbg_reset_state() {
			log.resets += 1;
		},
	} as unknown as WasmApi;
	const instances = new Instances();
	const instantiate = async () => {
		log.instantiated += 1;
		return new Instance(api, memory as unknown as WebAssembly.Memory, {} as WebAssembly.Module);
	};
	const platform: Pick<Platform, "fetch" | "instantiate" | "startThread"> = {
		fetch,
		instantiate: async () => ({ instance: await instances.get("fake", instantiate), threads }),
		startThread({ seat }) {
			log.seats.push(seat);
			return {
				onReport(listener) {
					if (start.type === "error") return;
					setImmediate(listener, start);
					log.whenFreed.push(() => setImmediate(listener, { type: "left" }));
				},
				onError: (listener) => start.type === "error" && setImmediate(listener, start.message),
				terminate() {
					log.terminated += 1;
				},
			};
		},
	};
	return { platform, log };
}
