// WebGPU in Chromium, on SwiftShader: the processor plays the GPU, slowly, through the whole of the browser's WebGPU.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { Model } from "../../pkg-template/src/model.js";
import { launch, openPage, serveFolders } from "../support/browser.js";
import { type App, installPacked } from "../support/packed.js";
import { bit7m, inRoot } from "../support/repo.js";
import type { TestServer } from "../support/server.js";

const PAGE = `<!doctype html><title>test</title>
<script type="module">import * as sterna from "/app/node_modules/sterna/index.js"; window.sterna = sterna;</script>`;
const SOFTWARE_GPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
/** Prompts that are generated for: few, since a software GPU takes its time. */
const CASES = bit7m.cases.filter(({ messages }) => messages).slice(0, 4);

const MIB = 2 ** 20;

let app: App;
let server: TestServer;
let browser: Browser;
let page: Page;

before(async () => {
	app = await installPacked();
	await writeFile(join(app.folder, "page.html"), PAGE);
	const folders = { "/app/": app.folder, "/bit-7m/": inRoot("models", "bit-7m") };
	server = await serveFolders(folders, { isolated: false });
	browser = await launch(SOFTWARE_GPU);
});

after(async () => {
	await browser?.close();
	await server?.close();
	await app?.remove();
});

beforeEach(async () => {
	await page?.close();
	({ page } = await openPage(browser, `${server.origin}/app/page.html`));
});

test("answers on the GPU are those of the processor", async () => {
	const { info, texts, losses, gpu, wasm } = await page.evaluate(
		async (cases) => {
			const ask = async (device: "webgpu" | "wasm") => {
				const model = await window.sterna.loadModel("/bit-7m/", { device, kvCache: "f32" });
				const texts: string[] = [];
				for (const { messages, maxTokens } of cases) {
					texts.push((await model.chat(messages!, { temperature: 0, maxTokens })).text);
				}
				const { losses } = await model.perplexity("The capital of France is Paris.");
				const { info } = model;
				const { gpu } = await model.stats();
				await model.dispose();
				return { info, texts, losses: Array.from(losses), gpu };
			};
			return { ...(await ask("webgpu")), wasm: await ask("wasm") };
		},
		CASES.map(({ messages, greedy_ids }) => ({ messages, maxTokens: greedy_ids.length })),
	);
	assert.equal(info.device, "webgpu");
	assert.deepEqual(info.fallbacks, []);
	assert.equal(wasm.info.device, "wasm");
	assert.ok(gpu && gpu.dispatches > 0 && wasm.gpu === undefined);
	// Where the margin between two tokens is small, another rounding may take the other one.
	const same = texts.filter((text, index) => text === wasm.texts[index]).length;
	assert.ok(same >= CASES.length - 1, `${JSON.stringify(texts)} on the GPU, ${JSON.stringify(wasm.texts)}`);
	for (const [index, loss] of losses.entries()) {
		assert.ok(Math.abs(loss - wasm.losses[index]!) <= 0.3, `loss ${index}: ${loss}, ${wasm.losses[index]}`);
	}
});

test("a software GPU is not chosen by itself, and the model says why", async () => {
	const info = await page.evaluate(async () => {
		const model = await window.sterna.loadModel("/bit-7m/");
		await model.dispose();
		return model.info;
	});
	assert.equal(info.device, "wasm");
	assert.equal(info.fallbacks.length, 1);
	assert.equal(info.fallbacks[0]!.device, "webgpu");
	assert.match(info.fallbacks[0]!.reason, /processor/);
});

test("the power preference is in every request for an adapter", async () => {
	const { requests, code } = await page.evaluate(async () => {
		const { GPU } = globalThis as unknown as {
			GPU: { prototype: { requestAdapter(options?: { powerPreference?: string }): Promise<unknown> } };
		};
		const requests: (string | undefined)[] = [];
		const request = GPU.prototype.requestAdapter;
		GPU.prototype.requestAdapter = async function (options) {
			requests.push(options?.powerPreference);
			// The package has looked; the module's own request ends here.
			return requests.length === 1 ? request.call(this, options) : null;
		};
		const options = { device: "webgpu", powerPreference: "high-performance", worker: false } as const;
		const failed = await window.sterna.loadModel("/bit-7m/", options).catch((error) => error);
		return { requests, code: failed.code };
	});
	assert.deepEqual(requests, ["high-performance", "high-performance"]);
	assert.equal(code, "unsupported_browser");
});

test("a generation can be stopped, and sampling with a seed repeats", async () => {
	const { partial, first, second } = await page.evaluate(async () => {
		const model = await window.sterna.loadModel("/bit-7m/", { device: "webgpu" });
		const controller = new AbortController();
		let partial = "";
		try {
			const stream = model.chat([{ role: "user", content: "Tell me a story." }], {
				ignoreEos: true,
				signal: controller.signal,
			});
			for await (const { text } of stream) {
				partial += text;
				if (partial.length > 5) controller.abort();
			}
		} catch (error) {
			if ((error as { code?: string }).code !== "aborted") throw error;
		}
		const sampling = { temperature: 1, topP: 0.9, seed: 7, maxTokens: 12, ignoreEos: true };
		const ask = async () => (await model.chat([{ role: "user", content: "Who are you?" }], sampling)).text;
		const [first, second] = [await ask(), await ask()];
		await model.dispose();
		return { partial, first, second };
	});
	assert.ok(partial.length > 5);
	assert.equal(first, second);
});

/** Puts the package's latest device, and a count of all, into `globalThis.gpu`, from where it can be destroyed. */
const WATCH_DEVICES = `
globalThis.gpu = { count: 0, lose() { this.device.destroy(); } };
const request = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (...args) {
	const device = await request.apply(this, args);
	Object.assign(globalThis.gpu, { device, count: globalThis.gpu.count + 1 });
	if (globalThis.gpu.areAllLost) device.destroy();
	return device;
};`;

interface WatchedGpu {
	gpu: { count: number; lose(): void; areAllLost?: boolean };
}

/** What is asked while devices are lost. */
const QUESTION = [{ role: "user", content: "Who are you?" }] as const;
const SAMPLING = [
	{ temperature: 0, maxTokens: 14, ignoreEos: true },
	{ temperature: 1, topP: 0.9, repetitionPenalty: 1.1, seed: 7, maxTokens: 14, ignoreEos: true },
] as const;

test("a conversation goes on when its device is lost", async () => {
	await page.evaluate(WATCH_DEVICES);
	const outcomes = await page.evaluate(
		async ([question, samplings]) => {
			const { gpu } = globalThis as unknown as WatchedGpu;
			const model = await window.sterna.loadModel("/bit-7m/", { device: "webgpu", worker: false });
			const ask = async (sampling: (typeof samplings)[number], lossAt: number[]) => {
				const stream = model.chat([...question], sampling);
				let tokens = 0;
				for await (const { tokenId } of stream) {
					if (tokenId !== undefined) tokens += 1;
					if (lossAt.includes(tokens)) gpu.lose();
				}
				const { text, tokenIds, usage } = await stream;
				return { text, tokenIds, completionTokens: usage.completionTokens };
			};
			const outcomes = [];
			for (const [index, sampling] of samplings.entries()) {
				const wanted = await ask(sampling, []);
				outcomes.push({ wanted, got: await ask(sampling, index === 0 ? [1, 8] : [5]) });
			}
			// Lost while nothing was generated.
			gpu.lose();
			const { losses } = await model.perplexity("The capital of France is Paris.");
			const { rebuilds } = await model.stats();
			await model.dispose();
			return { outcomes, rebuilds, devices: gpu.count, losses: losses.length, info: model.info };
		},
		[QUESTION, SAMPLING] as const,
	);
	for (const { wanted, got } of outcomes.outcomes) assert.deepEqual(got, wanted);
	assert.equal(outcomes.rebuilds, 4);
	assert.equal(outcomes.devices, 5);
	assert.ok(outcomes.losses > 3);
	assert.equal(outcomes.info.device, "webgpu");
});

test("a worker's lost device is replaced, with the model from the store and the server away", async () => {
	const script = await readFile(join(app.folder, "node_modules", "sterna", "worker.js"), "utf8");
	const body = `${WATCH_DEVICES}
new BroadcastChannel("lose").onmessage = () => globalThis.gpu.lose();
${script}`;
	const path = "/app/node_modules/sterna/worker.js";
	server.routes.set(path, { body, headers: { "Content-Type": "text/javascript" } });
	try {
		await page.evaluate(
			() =>
				new Promise((resolve, reject) => {
					window.sterna.loadModel("/bit-7m/", { device: "webgpu" }).then((model) => {
						Object.assign(window, { model });
						resolve(undefined);
					}, reject);
				}),
		);
		const weights = "/bit-7m/model.safetensors";
		server.routes.set(weights, { status: 503 });
		const [wanted, got] = await page.evaluate(
			async ([question, [sampling]]) => {
				const { model } = window as unknown as { model: Model };
				const ask = async (lossAt: number) => {
					const stream = model.chat([...question], sampling);
					let tokens = 0;
					for await (const _ of stream) {
						tokens += 1;
						if (tokens === lossAt) new BroadcastChannel("lose").postMessage(null);
					}
					return { text: (await stream).text, rebuilds: (await model.stats()).rebuilds };
				};
				const outcomes = [await ask(0), await ask(3)];
				await model.dispose();
				return outcomes;
			},
			[QUESTION, SAMPLING] as const,
		);
		assert.equal(got!.text, wanted!.text);
		assert.equal(wanted!.rebuilds, 0);
		assert.equal(got!.rebuilds, 1);
	} finally {
		server.routes.clear();
	}
});

test("a device that cannot be replaced ends the generation with its own error", async () => {
	await page.evaluate(WATCH_DEVICES);
	const outcomes = await page.evaluate(async (question) => {
		const { gpu } = globalThis as unknown as WatchedGpu;
		const options = { device: "webgpu", worker: false } as const;
		const failing = async (model: Model) => {
			let code = "none";
			const stream = model.chat([...question], { ignoreEos: true, maxTokens: 100 });
			try {
				for await (const _ of stream) gpu.lose();
			} catch (error) {
				code = (error as { code: string }).code;
			}
			// What needs no device goes on.
			const tokens = await model.countTokens("Hello");
			return { code, tokens, rebuilds: (await model.stats()).rebuilds };
		};
		const files = await Promise.all(
			["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"].map(
				async (name) => new File([await (await fetch(`/bit-7m/${name}`)).arrayBuffer()], name),
			),
		);
		// Every device is lost at once, also the one that takes its place.
		const again = await window.sterna.loadModel(files, options);
		const often = await failing(again);
		gpu.areAllLost = true;
		const never = await failing(again);
		gpu.areAllLost = false;
		const back = await again.chat([...question], { temperature: 0, maxTokens: 3 });
		await again.dispose();
		return { often, never, back: back.tokenIds.length };
	}, QUESTION);
	assert.equal(outcomes.often.code, "device_lost");
	assert.equal(outcomes.never.code, "device_lost");
	assert.equal(outcomes.never.rebuilds, outcomes.often.rebuilds);
	assert.ok(outcomes.often.tokens > 0);
	assert.equal(outcomes.back, 3);
});

test("where the device was not asked for, the processor takes the place of a lost one", async () => {
	await page.evaluate(WATCH_DEVICES);
	const { before, after, fallbacks, texts } = await page.evaluate(
		async ([question, [sampling]]) => {
			const { gpu } = globalThis as unknown as WatchedGpu;
			// A software GPU would not be chosen.
			const { GPUAdapterInfo } = globalThis as unknown as { GPUAdapterInfo: { prototype: object } };
			Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
			const model = await window.sterna.loadModel("/bit-7m/", { worker: false });
			const before = model.info.device;
			const texts = [(await model.chat([...question], sampling)).text];
			const stream = model.chat([...question], sampling);
			let text = "";
			for await (const delta of stream) {
				text += delta.text;
				if (gpu.areAllLost) continue;
				gpu.areAllLost = true;
				gpu.lose();
			}
			texts.push(text);
			const { device, fallbacks } = model.info;
			await model.dispose();
			return { before, after: device, fallbacks, texts };
		},
		[QUESTION, SAMPLING] as const,
	);
	assert.equal(before, "webgpu");
	assert.equal(after, "wasm");
	assert.equal(fallbacks.length, 1);
	assert.equal(fallbacks[0]!.device, "webgpu");
	assert.equal(texts[1], texts[0]);
});

test("a large embedding goes to the GPU in parts, of which one at a time is in memory", async () => {
	const path = join(app.folder, "large.gguf");
	// A layer of BitNet 2B-4T with half of its vocabulary: 350 MB, nearly all of them the embedding.
	app.run("node", inRoot("scripts", "synthetic.mjs"), path, "--layers", "1", "--vocab", "65536");
	const { memory, device } = await page.evaluate(async () => {
		const model = await window.sterna.loadModel("/app/large.gguf", { device: "webgpu", contextLength: 64 });
		const { memory } = await model.stats();
		await model.dispose();
		return { memory, device: model.info.device };
	});
	assert.equal(device, "webgpu");
	// 160 MiB of bytes for the embedding, in parts of 64.
	assert.ok(memory.weights > 160 * MIB, String(memory.weights));
	assert.ok(memory.wasm < 112 * MIB, `${memory.wasm} bytes of wasm memory`);
});

test("without WebGPU, asking for it is refused and leaving it open is not", async () => {
	const plain = await launch();
	try {
		const { page } = await openPage(plain, `${server.origin}/app/page.html`);
		const { code, info } = await page.evaluate(async () => {
			const failed = await window.sterna.loadModel("/bit-7m/", { device: "webgpu" }).catch((error) => error);
			const model = await window.sterna.loadModel("/bit-7m/", { device: "auto" });
			await model.dispose();
			return { code: failed.code, info: model.info };
		});
		assert.equal(code, "unsupported_browser");
		assert.equal(info.device, "wasm");
		assert.equal(info.fallbacks.length, 1);
	} finally {
		await plain.close();
	}
});
