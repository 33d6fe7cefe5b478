// WebGPU in Chromium, on SwiftShader: the processor plays the GPU, slowly, through the whole of the browser's WebGPU.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launch, openPage, serveFolders } from "../support/browser.js";
import { type App, installPacked } from "../support/packed.js";
import { bit7m, inRoot } from "../support/repo.js";
import type { TestServer } from "../support/server.js";

const PAGE = `<!doctype html><title>test</title>
<script type="module">import * as sterna from "/app/node_modules/sterna/index.js"; window.sterna = sterna;</script>`;
const SOFTWARE_GPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
/** Prompts that are generated for: few, since a software GPU takes its time. */
const CASES = bit7m.cases.filter(({ messages }) => messages).slice(0, 4);

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

test("a lost device ends the generation with its own error", async () => {
	const outcome = await page.evaluate(async () => {
		let device: { destroy(): void } | undefined;
		type Request = (...args: unknown[]) => Promise<typeof device>;
		const { GPUAdapter } = globalThis as unknown as { GPUAdapter: { prototype: { requestDevice: Request } } };
		const request = GPUAdapter.prototype.requestDevice;
		GPUAdapter.prototype.requestDevice = async function (...args) {
			device = await request.apply(this, args);
			return device;
		};
		const model = await window.sterna.loadModel("/bit-7m/", { device: "webgpu", worker: false });
		const codes: string[] = [];
		const ask = async () => {
			for await (const _ of model.chat([{ role: "user", content: "Hi" }], { ignoreEos: true })) {
				device?.destroy();
			}
		};
		for (let tries = 0; tries < 2; tries += 1) {
			await ask().catch((error) => codes.push(error.code));
		}
		await model.dispose();
		return codes;
	});
	assert.deepEqual(outcome, ["device_lost", "device_lost"]);
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
