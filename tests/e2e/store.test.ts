// Models that are kept in the browser, in Chromium: downloads that are interrupted in every way, damaged
// storage, two tabs, quotas, no network.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { LAUNCH, launch, serveFolders } from "../support/browser.js";
import { type App, installPacked } from "../support/packed.js";
import { startServer, type TestServer } from "../support/server.js";
import {
	ANSWER,
	CORS,
	freshPage,
	MODEL,
	requestsFor,
	serveModel,
	sternaPage,
	TEST_PAGE,
	tryLoad,
	WEIGHTS,
} from "../support/store-page.js";

const BLOCK = 1 << 20;
const FILE = "/m/model.safetensors";

let app: App;
let server: TestServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let url: string;

before(async () => {
	app = await installPacked();
	await writeFile(join(app.folder, "page.html"), TEST_PAGE);
	server = await serveFolders({ "/app/": app.folder });
	url = `${server.origin}/app/page.html`;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	await server?.close();
	await app?.remove();
});

beforeEach(async () => {
	server.reset();
	({ context, page } = await freshPage(browser, url));
});

afterEach(() => context.close());

/** Starts a load and leaves it running; resolves when so many bytes of the weights came. */
async function startLoading(page: Page, bytes: number): Promise<void> {
	await page.evaluate((bytes) => {
		const loading = window.sterna.loadModel("/m/", {
			onProgress: ({ loadedBytes }) => {
				if (loadedBytes > bytes) Object.assign(window, { isThere: true });
			},
		});
		loading.catch(() => undefined);
		Object.assign(window, { loading });
	}, bytes);
	await page.waitForFunction("window.isThere");
}

const slow = { piece: 50_000, delay: 20 };

for (const options of [{}, { worker: false }, { cache: { backend: "cache-api" } }]) {
	test(`a model is downloaded once and read from the browser's storage afterwards, with ${JSON.stringify(options)}`, async () => {
		serveModel(server, "/m/");
		const first = await tryLoad(page, "/m/", options);
		assert.equal(first.text, ANSWER, first.error?.message);
		assert.deepEqual(first.phases, ["prepare", "download", "load", "ready"]);
		assert.equal(first.last?.cachedBytes, 0);
		assert.ok(
			!server.requests.some(
				(request) => /chat_template|index\.json/.test(request) && !request.startsWith("HEAD"),
			),
			String(server.requests),
		);
		server.requests.length = 0;
		const second = await tryLoad(page, "/m/", options);
		assert.equal(second.text, ANSWER, second.error?.message);
		assert.deepEqual(second.phases, ["prepare", "read", "load", "ready"]);
		assert.equal(second.last?.cachedFraction, 1);
		assert.deepEqual(requestsFor(server, FILE), [`HEAD ${FILE}`]);
		const [model, ...others] = await page.evaluate(() => window.sterna.cache.list());
		assert.deepEqual(others, []);
		assert.equal(model?.source, `${server.origin}/m/`);
		assert.equal(model?.isComplete, true);
		assert.equal(model?.files.find(({ name }) => name === "model.safetensors")?.storedBytes, WEIGHTS.length);
	});
}

test("a download goes on after its tab was closed", async () => {
	serveModel(server, "/m/", { slow });
	await startLoading(page, 2 * BLOCK);
	await page.close();
	server.requests.length = 0;
	serveModel(server, "/m/");
	const again = await tryLoad(await sternaPage(context, url), "/m/");
	assert.equal(again.text, ANSWER, again.error?.message);
	const [request] = requestsFor(server, FILE).filter((request) => request.startsWith("GET"));
	assert.match(request ?? "", /bytes=[1-9]\d*-$/);
	assert.ok(again.last!.cachedBytes >= BLOCK, String(again.last!.cachedBytes));
});

test("a download goes on after the browser was killed", async () => {
	const profile = await mkdtemp(join(tmpdir(), "sterna-profile-"));
	try {
		const start = () => chromium.launchPersistentContext(profile, LAUNCH);
		serveModel(server, "/m/", { slow: { piece: 50_000, delay: 60 } });
		const doomed = await start();
		await startLoading(await sternaPage(doomed, url), 2.5 * BLOCK);
		const ended = new Promise((resolve) => doomed.once("close", resolve));
		const session = await doomed.newCDPSession(doomed.pages()[0]!);
		session.send("Browser.crash").catch(() => undefined);
		await ended;
		server.requests.length = 0;
		serveModel(server, "/m/");
		const revived = await start();
		const again = await tryLoad(await sternaPage(revived, url), "/m/");
		assert.equal(again.text, ANSWER, again.error?.message);
		assert.match(
			requestsFor(server, FILE).find((request) => request.startsWith("GET")) ?? "",
			/bytes=[1-9]\d*-$/,
		);
		await revived.close();
	} finally {
		await rm(profile, { recursive: true, force: true });
	}
});

test("damaged storage is noticed, and only what is damaged is downloaded again", async () => {
	serveModel(server, "/m/");
	assert.equal((await tryLoad(page, "/m/")).text, ANSWER);
	await page.evaluate(async () => {
		const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("sterna-models");
		for await (const [name, handle] of folder.entries()) {
			if (!name.endsWith(".blocks")) continue;
			const file = await (handle as FileSystemFileHandle).getFile();
			if (file.size < 3_000_000) continue;
			const writer = await (handle as FileSystemFileHandle).createWritable({ keepExistingData: true });
			await writer.write({ type: "write", position: (1 << 20) + 5, data: new Uint8Array([1, 2, 3, 4]) });
			await writer.close();
		}
	});
	const { damaged } = await page.evaluate(() => window.sterna.cache.verify());
	assert.deepEqual(damaged, [{ source: `${server.origin}/m/`, file: "model.safetensors", bytes: BLOCK }]);
	server.requests.length = 0;
	const repaired = await tryLoad(page, "/m/");
	assert.equal(repaired.text, ANSWER, repaired.error?.message);
	assert.deepEqual(repaired.notices, ["repaired"]);
	assert.deepEqual(requestsFor(server, FILE), [
		`HEAD ${FILE}`,
		`GET ${FILE} bytes=${BLOCK}-${2 * BLOCK - 1}`,
	]);
	assert.deepEqual((await page.evaluate(() => window.sterna.cache.verify())).damaged, []);
});

test("two tabs share one download, and the second goes on when the first is closed", async () => {
	serveModel(server, "/m/", { slow });
	await startLoading(page, 0.5 * BLOCK);
	const other = await sternaPage(context, url);
	const waiting = tryLoad(other, "/m/");
	await new Promise((resolve) => setTimeout(resolve, 500));
	const [first, second] = await Promise.all([
		page.evaluate(async () => {
			const model = await (window as unknown as { loading: Promise<{ dispose(): Promise<void> }> }).loading;
			await model.dispose();
			return true;
		}),
		waiting,
	]);
	assert.ok(first);
	assert.equal(second.text, ANSWER, second.error?.message);
	assert.deepEqual(second.phases, ["prepare", "wait", "read", "load", "ready"]);
	assert.equal(requestsFor(server, FILE).filter((request) => request.startsWith("GET")).length, 1);

	await page.evaluate(() => window.sterna.cache.clear());
	await startLoading(page, 1.5 * BLOCK);
	const heir = tryLoad(other, "/m/");
	await new Promise((resolve) => setTimeout(resolve, 500));
	await page.close();
	assert.equal((await heir).text, ANSWER);
});

test("without a network a stored model loads, and one that is not gives a network error", async () => {
	const away = await startServer();
	serveModel(away, "/m/", {}, CORS);
	assert.equal((await tryLoad(page, `${away.origin}/m/`)).text, ANSWER);
	await away.close();
	const stored = await tryLoad(page, `${away.origin}/m/`);
	assert.equal(stored.text, ANSWER, stored.error?.message);
	assert.deepEqual(stored.phases, ["prepare", "read", "load", "ready"]);
	const missing = await tryLoad(page, `${away.origin}/n/`);
	assert.equal(missing.error?.code, "network");
});

test("a network that goes away in the middle of a download, and comes back, costs only the wait", async () => {
	const away = await startServer();
	serveModel(away, "/m/", { slow }, CORS);
	const port = Number(new URL(away.origin).port);
	const loading = tryLoad(page, `${away.origin}/m/`);
	while (away.sentBytes < 2 * BLOCK) await new Promise((resolve) => setTimeout(resolve, 50));
	await away.close();
	await new Promise((resolve) => setTimeout(resolve, 1000));
	const back = await startServer(undefined, port);
	try {
		serveModel(back, "/m/", {}, CORS);
		const outcome = await loading;
		assert.equal(outcome.text, ANSWER, outcome.error?.message);
		assert.ok(outcome.notices.includes("retrying"), String(outcome.notices));
		const [request, ...others] = requestsFor(back, FILE);
		assert.match(request ?? "", /bytes=[1-9]\d*-$/);
		assert.deepEqual(others, []);
	} finally {
		await back.close();
	}
});

test("a check of what is stored tells how far it is, and can be aborted", async () => {
	serveModel(server, "/m/");
	for (const options of [{}, { cache: { backend: "cache-api" } }]) {
		assert.equal((await tryLoad(page, "/m/", options)).text, ANSWER);
		const { report, steps, code } = await page.evaluate(async () => {
			const { cache } = window.sterna;
			const steps: { doneBytes: number; totalBytes: number }[] = [];
			const report = await cache.verify({ onProgress: (step) => steps.push(step) });
			const controller = new AbortController();
			const aborted = cache.verify({ signal: controller.signal });
			controller.abort();
			const code = await aborted.then(
				() => "none",
				({ code }) => code,
			);
			return { report, steps, code };
		});
		assert.deepEqual(report.damaged, []);
		assert.ok(report.bytes > WEIGHTS.length);
		assert.deepEqual(steps.at(-1), { doneBytes: report.bytes, totalBytes: report.bytes });
		assert.equal(code, "aborted");
		await page.evaluate(() => window.sterna.cache.clear());
	}
});

test("a model for which there is no room is loaded without being kept, unless it must be", async () => {
	serveModel(server, "/m/");
	const session = await context.newCDPSession(page);
	for (const quotaSize of [2 * BLOCK, 100_000]) {
		await session.send("Storage.overrideQuotaForOrigin", { origin: server.origin, quotaSize });
		const outcome = await tryLoad(page, "/m/");
		assert.equal(outcome.text, ANSWER, outcome.error?.message);
		assert.ok(outcome.notices.includes("quota_exceeded"), String(outcome.notices));
	}
	const refused = await tryLoad(page, "/m/", { cache: { required: true } });
	assert.equal(refused.error?.code, "quota_exceeded");
	assert.match(refused.error.message, /no room/);
});

test("a quota that is used up in the middle of a download ends the storing only", async () => {
	serveModel(server, "/m/", { chunked: true, slow: { piece: 200_000, delay: 5 } });
	const session = await context.newCDPSession(page);
	await session.send("Storage.overrideQuotaForOrigin", { origin: server.origin, quotaSize: 2.5 * BLOCK });
	const outcome = await tryLoad(page, "/m/");
	assert.equal(outcome.text, ANSWER, outcome.error?.message);
	assert.ok(outcome.notices.includes("quota_exceeded"), String(outcome.notices));
});

test("progress tells how fast a download is, and how long it will take", async () => {
	serveModel(server, "/m/", { slow });
	const speeds = await page.evaluate(async () => {
		const speeds: number[][] = [];
		const model = await window.sterna.loadModel("/m/", {
			onProgress({ bytesPerSecond, remainingTime, fraction }) {
				if (bytesPerSecond !== undefined) speeds.push([bytesPerSecond, remainingTime!, fraction!]);
			},
		});
		await model.dispose();
		return speeds;
	});
	assert.ok(speeds.length > 1);
	for (const [speed, time, fraction] of speeds) {
		assert.ok(speed! > 0 && time! >= 0 && fraction! > 0 && fraction! <= 1, String([speed, time, fraction]));
	}
});

test("a load is paused, resumed and aborted", async () => {
	serveModel(server, "/m/", { slow });
	await startLoading(page, BLOCK);
	const paused = await page.evaluate(async () => {
		const { loading } = window as unknown as {
			loading: import("../../pkg-template/src/model-load.js").ModelLoad;
		};
		loading.pause();
		await new Promise((resolve) => setTimeout(resolve, 300));
		return loading.isPaused;
	});
	assert.ok(paused);
	const sent = server.sentBytes;
	await new Promise((resolve) => setTimeout(resolve, 300));
	assert.ok(server.sentBytes - sent < 100_000, "nothing is sent while the load is paused");
	serveModel(server, "/m/");
	const text = await page.evaluate(async () => {
		const { loading } = window as unknown as {
			loading: import("../../pkg-template/src/model-load.js").ModelLoad;
		};
		loading.resume();
		const model = await loading;
		const { text } = await model.chat([{ role: "user", content: "What is the capital of Japan?" }], {
			temperature: 0,
		});
		await model.dispose();
		return text;
	});
	assert.equal(text, ANSWER);
	assert.ok(
		requestsFor(server, FILE).some((request) => /bytes=[1-9]/.test(request)),
		String(server.requests),
	);

	await page.evaluate(() => window.sterna.cache.clear());
	serveModel(server, "/m/", { slow });
	const code = await page.evaluate(async () => {
		const loading = window.sterna.loadModel("/m/");
		setTimeout(() => loading.abort("not today"), 300);
		return loading.then(
			() => "none",
			({ code, message }) => `${code}: ${message}`,
		);
	});
	assert.equal(code, "aborted: not today");
});

test("digests are checked, and a wrong file is neither used nor kept", async () => {
	serveModel(server, "/m/");
	const digest = createHash("sha256").update(WEIGHTS);
	const base64 = digest.copy().digest("base64");
	const hex = digest.digest("hex");
	for (const integrity of [`sha256-${base64}`, { "model.safetensors": hex }]) {
		const right = await tryLoad(page, "/m/", { integrity });
		assert.equal(right.text, ANSWER, right.error?.message);
	}
	const wrong = await tryLoad(page, "/m/", { integrity: { "model.safetensors": "0".repeat(64) } });
	assert.equal(wrong.error?.code, "integrity_mismatch");
	const unknown = await tryLoad(page, "/m/", { integrity: { "model.gguf": "0".repeat(64) } });
	assert.equal(unknown.error?.code, "invalid_argument");
	assert.match(unknown.error.message, /model\.gguf, which the model does not have.*model\.safetensors/);
});

test("stored models are listed, exported and deleted", async () => {
	serveModel(server, "/m/");
	serveModel(server, "/n/");
	for (const source of ["/m/", "/n/"]) assert.equal((await tryLoad(page, source)).text, ANSWER);
	const found = await page.evaluate(async (origin) => {
		const { cache, loadModel } = window.sterna;
		const { models, isPersistent } = await cache.usage();
		const files = await cache.export(`${origin}/m/`);
		const model = await loadModel(files);
		const { text } = await model.chat([{ role: "user", content: "What is the capital of Japan?" }], {
			temperature: 0,
		});
		await model.dispose();
		await cache.delete(`${origin}/m/`);
		const again = await cache.delete(`${origin}/m/`).then(
			() => "none",
			({ code }) => code,
		);
		const left = (await cache.list()).map(({ source }) => source);
		await cache.clear();
		return {
			models,
			isPersistent,
			names: files.map(({ name }) => name).sort(),
			text,
			again,
			left,
			after: await cache.list(),
		};
	}, server.origin);
	assert.ok(found.models > 2 * WEIGHTS.length);
	assert.deepEqual(found.names, [
		"config.json",
		"generation_config.json",
		"model.safetensors",
		"tokenizer.json",
		"tokenizer_config.json",
	]);
	assert.equal(found.text, ANSWER);
	assert.equal(found.again, "invalid_argument");
	assert.deepEqual(found.left, [`${server.origin}/n/`]);
	assert.deepEqual(found.after, []);
});

test("models are loaded from handles and from drops", async () => {
	serveModel(server, "/m/");
	const outcomes = await page.evaluate(async (names) => {
		const root = await navigator.storage.getDirectory();
		const folder = await root.getDirectoryHandle("picked", { create: true });
		const dropped = new DataTransfer();
		for (const name of [...names, "notes.txt"]) {
			const found = await fetch(`/m/${name}`);
			const bytes = await found.arrayBuffer();
			const handle = await folder.getFileHandle(name, { create: true });
			const writer = await handle.createWritable();
			await writer.write(bytes);
			await writer.close();
			if (found.ok) dropped.items.add(new File([bytes], name));
		}
		const empty = await root.getDirectoryHandle("empty", { create: true });
		const file = await folder.getFileHandle("model.safetensors");
		const ask = async (source: import("../../pkg-template/src/types.js").ModelSource) => {
			try {
				const model = await window.sterna.loadModel(source);
				const { text } = await model.chat([{ role: "user", content: "What is the capital of Japan?" }], {
					temperature: 0,
				});
				await model.dispose();
				return text;
			} catch (error) {
				return (error as Error).message;
			}
		};
		return [
			await ask(folder),
			await ask(dropped),
			await ask(dropped.files),
			await ask(empty),
			await ask(file),
		];
	}, Object.keys(MODEL));
	assert.deepEqual(outcomes.slice(0, 3), [ANSWER, ANSWER, ANSWER]);
	assert.match(outcomes[3]!, /no model in the folder empty/);
	assert.match(outcomes[4]!, /config\.json/);
});

test("a page's own fetch is used, from the worker too", async () => {
	serveModel(server, "/m/");
	const { text, urls } = await page.evaluate(async () => {
		const urls: string[] = [];
		const model = await window.sterna.loadModel("/secret/m/", {
			fetch: (input, init) => {
				urls.push(String(input));
				return fetch(String(input).replace("/secret/", "/"), init);
			},
		});
		const { text } = await model.chat([{ role: "user", content: "What is the capital of Japan?" }], {
			temperature: 0,
		});
		await model.dispose();
		return { text, urls };
	});
	assert.equal(text, ANSWER);
	assert.ok(urls.includes(`${server.origin}/secret/m/model.safetensors`));
});

describe("estimates", () => {
	test("tell what a load takes, and store nothing", async () => {
		serveModel(server, "/m/");
		const look = () => page.evaluate(() => window.sterna.estimate("/m/"));
		const before = await look();
		assert.equal(before.supported, true);
		assert.equal(before.fits, true);
		assert.deepEqual(before.advice, []);
		assert.ok(before.downloadBytes! > WEIGHTS.length);
		assert.equal(before.downloadBytes, before.totalBytes);
		assert.ok(before.memory!.weights > 1e6 && before.memory!.kvCache > 0);
		assert.equal(before.parameters, 7352576);
		assert.deepEqual(await page.evaluate(() => window.sterna.cache.list()), []);
		assert.equal((await tryLoad(page, "/m/")).text, ANSWER);
		const after = await look();
		assert.equal(after.downloadBytes, 0);
		assert.equal(after.totalBytes, before.totalBytes);
	});
});
