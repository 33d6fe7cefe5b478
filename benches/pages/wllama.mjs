// The peer, wllama (llama.cpp in WebAssembly), as the benchmark calls it in a page.
import { Wllama } from "/wllama/index.js";

const wllama = new Wllama({ default: "/wllama/wasm/wllama.wasm" }, { suppressNativeLog: true });

const ALL_LAYERS = 999;

/** Without what its kernels are written for, llama.cpp leaves the GPU alone and says nothing. */
async function requireGpu() {
	const adapter = await navigator.gpu?.requestAdapter();
	if (!wllama.isSupportWebGPU() || !adapter?.features.has("shader-f16"))
		throw new Error("its WebGPU kernels need a GPU with 'shader-f16'");
}

/** Loads a model to compute on the CPU, or with every layer on the GPU; gives the time and what computes. */
export async function load({ url, threads, contextLength, onGpu }) {
	if (onGpu) await requireGpu();
	const begin = performance.now();
	const blob = await (await fetch(url)).blob();
	await wllama.loadModel([blob], {
		n_ctx: contextLength,
		n_batch: 512,
		n_ubatch: 512,
		n_threads: threads,
		n_parallel: 1,
		n_gpu_layers: onGpu ? ALL_LAYERS : 0,
		warmup: false,
	});
	const ms = performance.now() - begin;
	return { ms, engine: { kernel: Wllama.getLibllamaVersion(), threads: wllama.getNumThreads() } };
}

/** Computes a prompt and generates `tokens` tokens. */
export async function generate({ text, tokens }) {
	const begin = performance.now();
	let timings;
	await wllama.createCompletion({
		prompt: text,
		max_tokens: tokens,
		temperature: 0,
		ignore_eos: true,
		cache_prompt: false,
		stream: true,
		onData: (chunk) => {
			timings = chunk.timings ?? timings;
		},
	});
	const ms = performance.now() - begin;
	return { ms, promptTokens: timings.prompt_n, tokens: timings.predicted_n };
}
