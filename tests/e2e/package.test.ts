// The packed tarball, installed into an app, in Chromium: without a bundler, and bundled.

import assert from "node:assert/strict";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { build, createServer } from "vite";
import { blankLlama } from "../support/blank-llama.js";
import { launch, openPage, serveFolders } from "../support/browser.js";
import { type App, installPacked } from "../support/packed.js";
import { bit7m, fileFromEnvironment, inRoot, llama3Strings, readTensor } from "../support/repo.js";
import { startServer, type TestServer } from "../support/server.js";

const IMPORT_MAP_PAGE = `<!doctype html><title>test</title>
<script type="importmap">{ "imports": { "sterna": "/app/node_modules/sterna/index.js" } }</script>
<script type="module">import * as sterna from "sterna"; window.sterna = sterna;</script>`;

const BUNDLED_PAGE = `<!doctype html><title>test</title><script type="module" src="./main.js"></script>`;

let app: App;
let server: TestServer;
/** Another origin, which allows no one to read its files. */
let foreign: TestServer;
let browser: Browser;
let page: Page;
let errors: string[];

before(async () => {
	app = await installPacked();
	await mkdir(join(app.folder, "bundled"));
	await cp(inRoot("models", "bit-7m"), join(app.folder, "bundled", "public", "bit-7m"), { recursive: true });
	await writeFile(join(app.folder, "page.html"), IMPORT_MAP_PAGE);
	await writeFile(join(app.folder, "bundled", "index.html"), BUNDLED_PAGE);
	await writeFile(
		join(app.folder, "bundled", "main.js"),
		'import * as sterna from "sterna"; window.sterna = sterna;',
	);
	await build({ root: join(app.folder, "bundled"), base: "./", logLevel: "warn", configFile: false });
	server = await serveFolders({
		"/app/": app.folder,
		"/bit-7m/": inRoot("models", "bit-7m"),
		"/fixtures/": inRoot("tests", "fixtures"),
	});
	foreign = await startServer();
	browser = await launch();
	({ page, errors } = await openPage(browser, `${server.origin}/app/page.html`));
});

after(async () => {
	await browser?.close();
	await Promise.all([server?.close(), foreign?.close()]);
	await app?.remove();
});

beforeEach(() => {
	errors.length = 0;
	server.routes.clear();
});

/** Loads a model in the page and keeps it there. */
async function load(on: Page, source: string, options: object = {}): Promise<void> {
	await on.evaluate(
		async ([source, options]) => {
			await window.model?.dispose();
			window.model = undefined;
			window.model = await window.sterna.loadModel(source, options);
		},
		[source, options] as const,
	);
}

/** What a call in the page is rejected with. */
async function failure(on: Page, source: string, options: object = {}) {
	return on.evaluate(
		async ([source, options]) => {
			try {
				await (await window.sterna.loadModel(source, options)).dispose();
			} catch (error) {
				const { SternaError, NetworkError } = window.sterna;
				if (!(error instanceof SternaError)) return { code: "not a SternaError", message: String(error) };
				const status = error instanceof NetworkError ? error.status : undefined;
				return { code: error.code, message: error.message, status };
			}
			return { code: "no error", message: "" };
		},
		[source, options] as const,
	);
}

const ask = (on: Page, content: string) =>
	on.evaluate(async (content) => {
		let streamed = "";
		const stream = window.model!.chat([{ role: "user", content }], { temperature: 0 });
		for await (const { text } of stream) streamed += text;
		return { streamed, ...(await stream) };
	}, content);

/** Waits until the page has so many workers: the browser tells of their end a little later. */
async function waitForWorkers(page: Page, count: number): Promise<void> {
	for (let tries = 0; page.workers().length !== count && tries < 600; tries++) await page.waitForTimeout(50);
	assert.equal(page.workers().length, count);
}

for (const [name, path] of [
	["an import map", "/app/page.html"],
	["a Vite build", "/app/bundled/dist/index.html"],
] as const) {
	test(`a page with ${name} chats, in a worker and in-process`, async () => {
		for (const worker of [true, false]) {
			const opened = await openPage(browser, `${server.origin}${path}`);
			await load(opened.page, "/bit-7m/", { worker });
			// The engine's worker, and those of its further threads.
			const threads = await opened.page.evaluate(() => window.model!.info.threads);
			await waitForWorkers(opened.page, worker ? threads : 0);
			const result = await ask(opened.page, "What is the capital of Japan?");
			assert.equal(result.text, "The capital of Japan is Tokyo.");
			assert.equal(result.streamed, result.text);
			assert.equal(result.finishReason, "stop");
			assert.ok(result.timing.decodeTps > 0 && result.timing.prefillTps > 0);
			assert.deepEqual(opened.errors, []);
			await opened.page.close();
		}
	});
}

test("Vite's development server, which answers with the page where a file is missing", async () => {
	const vite = await createServer({
		root: join(app.folder, "bundled"),
		configFile: false,
		logLevel: "warn",
		server: { port: 0, host: "127.0.0.1" },
	});
	try {
		await vite.listen();
		const opened = await openPage(browser, vite.resolvedUrls!.local[0]!);
		await load(opened.page, "/bit-7m/");
		assert.equal((await ask(opened.page, "What sound does a cow make?")).text, "A cow moos.");
		await opened.page.close();
	} finally {
		await vite.close();
	}
});

test("a page of another origin than the package's, as with a CDN", async () => {
	const cdn = await startServer(async (_, path) => {
		const body = await readFile(join(app.folder, "node_modules", path)).catch(() => undefined);
		const type = path.endsWith(".wasm") ? "application/wasm" : "text/javascript";
		const headers = { "Content-Type": type, "Access-Control-Allow-Origin": "*" };
		return body && { body, headers };
	});
	try {
		const html = IMPORT_MAP_PAGE.replace("/app/node_modules", cdn.origin);
		server.routes.set("/cdn.html", { body: html, headers: { "Content-Type": "text/html" } });
		const opened = await openPage(browser, `${server.origin}/cdn.html`);
		await load(opened.page, "/bit-7m/");
		assert.equal((await ask(opened.page, "What sound does a cow make?")).text, "A cow moos.");
		await opened.page.close();
	} finally {
		await cdn.close();
	}
});

describe("the embedded model in a worker", () => {
	before(() => load(page, "/bit-7m/", { kvCache: "f32" }));

	test("its greedy texts are those of the reference", async () => {
		for (const { messages, prompt, prompt_text, prompt_ids, ...wanted } of bit7m.cases) {
			const ours = await page.evaluate(
				async ([messages, prompt, maxTokens]) => {
					const model = window.model!;
					const options = { temperature: 0, maxTokens };
					const text = messages ? await model.applyChatTemplate(messages) : prompt!;
					const ids = await model.tokenize(text, { addSpecialTokens: !messages });
					const result = await (messages ? model.chat(messages, options) : model.generate(text, options));
					return { text, ids: Array.from(ids), result };
				},
				[messages, prompt, wanted.greedy_ids.length] as const,
			);
			if (messages) assert.equal(ours.text, prompt_text);
			assert.deepEqual(ours.ids, prompt_ids);
			if (wanted.smallest_top2_margin < 0.05) continue;
			assert.equal(ours.result.text, wanted.greedy_text);
			const stop = ours.result.stopToken;
			const ids = stop === undefined ? ours.result.tokenIds : [...ours.result.tokenIds, stop];
			assert.deepEqual(ids, wanted.greedy_ids);
		}
	});

	test("the page stays responsive while text is generated", async () => {
		const longest = await page.evaluate(async () => {
			let last = performance.now();
			let longest = 0;
			const timer = setInterval(() => {
				const now = performance.now();
				longest = Math.max(longest, now - last);
				last = now;
			}, 5);
			await window.model!.generate("Once upon a time,", { maxTokens: 200, ignoreEos: true });
			clearInterval(timer);
			return longest;
		});
		assert.ok(longest < 250, `the page was blocked for ${longest} ms`);
	});

	test("aborts in prefill and in decode are obeyed within a step, and the model stays usable", async () => {
		const outcome = await page.evaluate(async () => {
			const model = window.model!;
			const time = async (
				prompt: number[],
				when: (stop: () => void) => ((text: string) => void) | undefined,
			) => {
				const controller = new AbortController();
				let aborted = 0;
				const onText = when(() => {
					aborted = performance.now();
					controller.abort();
				});
				const stream = model.generate(prompt, {
					maxTokens: 400,
					ignoreEos: true,
					signal: controller.signal,
				});
				try {
					for await (const { text } of stream) onText?.(text);
				} catch (error) {
					const { code, partialText } = error as { code: string; partialText: string };
					return { code, partialText, after: performance.now() - aborted };
				}
				return { code: "none", partialText: "", after: 0 };
			};
			const long = Array.from({ length: 450 }, (_, i) => 300 + i);
			const prefill = await time(long, (stop) => {
				setTimeout(stop, 30);
				return undefined;
			});
			let pieces = 0;
			const decode = await time([300, 301], (stop) => () => {
				pieces += 1;
				if (pieces === 5) stop();
			});
			const { text } = await model.chat([{ role: "user", content: "What sound does a cow make?" }], {
				temperature: 0,
			});
			return { prefill, decode, text };
		});
		assert.equal(outcome.prefill.code, "aborted");
		assert.equal(outcome.prefill.partialText, "");
		assert.ok(outcome.prefill.after < 500, `${outcome.prefill.after} ms`);
		assert.equal(outcome.decode.code, "aborted");
		assert.notEqual(outcome.decode.partialText, "");
		assert.ok(outcome.decode.after < 500, `${outcome.decode.after} ms`);
		assert.equal(outcome.text, "A cow moos.");
	});

	test("leaving the loop, stop strings over several tokens, and the same seed twice", async () => {
		const outcome = await page.evaluate(async () => {
			const model = window.model!;
			const messages = [{ role: "user", content: "What is the capital of Japan?" }];
			const left = model.chat(messages, { temperature: 0 });
			for await (const _ of left) break;
			const code = await left.then(
				() => "none",
				(error: unknown) => (error as { code: string }).code,
			);
			const stopped = await model.chat(messages, { temperature: 0, stop: "ital of J" });
			const random = { temperature: 1.2, seed: 11, maxTokens: 30 };
			const one = await model.generate("One day", random);
			const two = await model.generate("One day", random);
			return { code, stopped, same: one.text === two.text };
		});
		assert.equal(outcome.code, "aborted");
		assert.equal(outcome.stopped.text, "The cap");
		assert.equal(outcome.stopped.finishReason, "stop");
		assert.equal(outcome.stopped.stopSequence, "ital of J");
		assert.ok(outcome.same);
	});

	test("wrong calls give typed errors, and the model stays usable", async () => {
		const outcome = await page.evaluate(async () => {
			const model = window.model!;
			const code = (call: () => PromiseLike<unknown>) =>
				Promise.resolve()
					.then(call)
					.then(
						() => "none",
						(error) => error.code,
					);
			const codes = [
				await code(() => model.generate("")),
				await code(() => model.generate([])),
				await code(() => model.generate(new Array(600).fill(5))),
				await code(() => model.generate([70_000])),
				await code(() => model.generate("x", { nonsense: 1 } as object)),
				await code(() => model.chat([])),
				await code(() => model.perplexity([1])),
			];
			return {
				codes,
				text: (
					await model.chat([{ role: "user", content: "What sound does a cow make?" }], { temperature: 0 })
				).text,
			};
		});
		assert.deepEqual(outcome.codes, [
			"invalid_argument",
			"invalid_argument",
			"context_overflow",
			...new Array(4).fill("invalid_argument"),
		]);
		assert.equal(outcome.text, "A cow moos.");
	});

	test("disposing ends the workers", async () => {
		await page.evaluate(() => window.model!.dispose());
		await waitForWorkers(page, 0);
	});
});

test("logits in the browser are those of the reference, from a URL, files and bytes", async () => {
	const reference = inRoot("tests", "fixtures", "bitnet-a-relu2-logits.safetensors");
	const ids = [...readTensor(reference, "ids16").values];
	const wanted = readTensor(reference, "logits16_packed_f32").values;
	const all = await page.evaluate(async (ids) => {
		const { loadModel } = window.sterna;
		const fetchFile = async (path: string) => (await fetch(`/fixtures/${path}`)).arrayBuffer();
		const folder = "bitnet-a-relu2-packed";
		const files = await Promise.all(
			["model.safetensors", "config.json"].map(
				async (name) => new File([await fetchFile(`${folder}/${name}`)], name),
			),
		);
		const gguf = await fetchFile("gguf/bitnet-a-relu2-i2_s.gguf");
		const sources = [`/fixtures/${folder}`, files, gguf, new Blob([gguf])];
		const results: number[][] = [];
		for (const source of sources) {
			const model = await loadModel(source, { kvCache: "f32" });
			results.push((await model.logits(ids)).flatMap((row) => Array.from(row)));
			await model.dispose();
		}
		return results;
	}, ids);
	assert.equal(all.length, 4);
	for (const logits of all) {
		assert.equal(logits.length, wanted.length);
		const difference = Math.max(...logits.map((value, i) => Math.abs(value - wanted[i]!)));
		assert.ok(difference <= 1e-4, `max difference ${difference}`);
	}
});

test("the Llama-3 tokenizer gives the reference's ids, and the texts back", async () => {
	const tokenizer = await readFile(fileFromEnvironment("STERNA_LLAMA3_TOKENIZER"));
	for (const [name, body] of blankLlama(128_256, tokenizer)) server.routes.set(`/llama3/${name}`, { body });
	await load(page, "/llama3/");
	assert.equal(llama3Strings.length, 213);
	const ours = await page.evaluate(
		async (texts) => {
			const results: { ids: number[]; text: string }[] = [];
			for (const text of texts) {
				const ids = await window.model!.tokenize(text);
				results.push({
					ids: Array.from(ids),
					text: await window.model!.detokenize(ids, { skipSpecialTokens: true }),
				});
			}
			return results;
		},
		llama3Strings.map(({ text }) => text),
	);
	ours.forEach(({ ids, text }, i) => {
		assert.deepEqual(ids, llama3Strings[i]!.ids, JSON.stringify(llama3Strings[i]!.text));
		assert.equal(text, llama3Strings[i]!.text);
	});
});

test("failures of the network and of files are typed, and do not spoil later loads", async () => {
	const file = await readFile(inRoot("tests", "fixtures", "gguf", "bitnet-a-relu2-i2_s.gguf"));
	const half = file.length >> 1;
	server.routes.set("/cut.gguf", { body: file, cutAfter: half });
	server.routes.set("/short.gguf", { body: file.subarray(0, half) });
	server.routes.set("/page.gguf", {
		body: "<!doctype html><html></html>",
		headers: { "Content-Type": "text/html" },
	});
	server.routes.set("/noise.gguf", { body: "noise ".repeat(1000) });
	foreign.routes.set("/m.gguf", { body: file });
	const cases: [string, string, RegExp][] = [
		["/none.gguf", "network", /404.*check the address/s],
		["/none/", "network", /config\.json/],
		[`${foreign.origin}/m.gguf`, "network", /Access-Control-Allow-Origin/],
		["http://127.0.0.1:9/m.gguf", "network", /could not be fetched/],
		["/cut.gguf", "network", /cut after/],
		["/short.gguf", "corrupt_file", /./],
		["/page.gguf", "network", /HTML page/],
		["/noise.gguf", "corrupt_file", /neither a GGUF nor/],
		["hf:nonsense", "invalid_argument", /hf:owner\/repo/],
	];
	for (const [source, code, message] of cases) {
		const error = await failure(page, source);
		assert.equal(error.code, code, `${source}: ${error.message}`);
		assert.match(error.message, message);
	}
	assert.equal((await failure(page, "/x.gguf", { threads: 0 })).code, "invalid_argument");
	assert.equal((await failure(page, "/x.gguf", { device: "webgpu" })).code, "unsupported_browser");
	const engine = await failure(page, "/bit-7m/", { wasmUrl: "/none.wasm" });
	assert.equal(engine.code, "network");
	assert.match(engine.message, /wasmUrl/);
	await load(page, "/bit-7m/");
	assert.equal((await ask(page, "What sound does a cow make?")).text, "A cow moos.");
	assert.deepEqual(errors, []);
});

test("a load reports its progress, and an abort ends it and its download", async () => {
	const file = await readFile(inRoot("models", "bit-7m", "model.safetensors"));
	for (const name of ["config.json", "tokenizer.json"]) {
		server.routes.set(`/slow/${name}`, { body: await readFile(inRoot("models", "bit-7m", name)) });
	}
	server.routes.set("/slow/model.safetensors", { body: file, slow: { piece: 50_000, delay: 40 } });
	const before_ = server.aborted;
	const outcome = await page.evaluate(async () => {
		const seen: { phase: string; fraction?: number }[] = [];
		const controller = new AbortController();
		let abortedAt = 0;
		const loading = window.sterna.loadModel("/slow/", {
			signal: controller.signal,
			onProgress(progress) {
				seen.push(progress);
				if ((progress.fraction ?? 0) < 0.5 || progress.file !== "model.safetensors" || abortedAt) return;
				abortedAt = performance.now();
				controller.abort("changed my mind");
			},
		});
		return loading.then(
			() => ({ code: "none", message: "", after: 0, seen }),
			(error) => ({ code: error.code, message: error.message, after: performance.now() - abortedAt, seen }),
		);
	});
	assert.equal(outcome.code, "aborted");
	assert.match(outcome.message, /changed my mind/);
	assert.ok(outcome.after < 300, `${outcome.after} ms`);
	assert.ok(
		outcome.seen.length > 3 && outcome.seen.every(({ phase }) => phase === "prepare" || phase === "download"),
	);
	for (let tries = 0; server.aborted === before_ && tries < 100; tries++) await page.waitForTimeout(50);
	assert.ok(server.aborted > before_, "the download was ended");
});

test("capabilities tell what a page has, and which headers it lacks", async () => {
	const isolated = await page.evaluate(() => window.sterna.capabilities());
	assert.equal(isolated.supported, true);
	assert.deepEqual([isolated.crossOriginIsolated, isolated.missingHeaders], [true, {}]);
	assert.deepEqual([isolated.wasm.simd, isolated.wasm.threads, isolated.workers], [true, true, true]);
	const plain = await serveFolders({ "/app/": app.folder }, { isolated: false });
	try {
		const opened = await openPage(browser, `${plain.origin}/app/page.html`);
		const { crossOriginIsolated, missingHeaders } = await opened.page.evaluate(() =>
			window.sterna.capabilities(),
		);
		assert.equal(crossOriginIsolated, false);
		assert.deepEqual(Object.keys(missingHeaders), [
			"Cross-Origin-Opener-Policy",
			"Cross-Origin-Embedder-Policy",
		]);
		await opened.page.close();
	} finally {
		await plain.close();
	}
});
