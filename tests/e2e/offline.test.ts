// The demo page on a server that cannot set headers, without a network, and after an update.

import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { launch, serveFolders } from "../support/browser.js";
import { inRoot } from "../support/repo.js";
import type { TestServer } from "../support/server.js";

const READY = "#model-state[data-state=ready]";
const WEIGHTS = "GET /models/bit-7m/model.safetensors";

describe("the demo page on a plain server", { timeout: 300_000 }, () => {
	let folder: string;
	let browser: Browser;
	let context: BrowserContext;
	let server: TestServer;
	let page: Page;

	before(async () => {
		const { buildPage } = await import(pathToFileURL(inRoot("scripts", "build-page.mjs")).href);
		folder = await mkdtemp(join(tmpdir(), "sterna-page-"));
		await cp(await buildPage(), folder, { recursive: true });
		browser = await launch();
	});

	after(async () => {
		await browser?.close();
		await rm(folder, { recursive: true, force: true });
	});

	beforeEach(async () => {
		server = await serveFolders({ "/": folder }, { isolated: false });
		context = await browser.newContext();
		page = await context.newPage();
		page.setDefaultTimeout(60_000);
		await page.goto(server.origin);
		await page.waitForSelector(READY);
	});

	afterEach(async () => {
		await context.close();
		await server.close();
	});

	/** What the model says to a question. */
	async function ask(question: string): Promise<string> {
		await page.fill("#prompt", question);
		await page.press("#prompt", "Enter");
		await page.waitForSelector(".is-last .answer[data-state=done]");
		return ((await page.textContent(".is-last .answer > .prose")) ?? "").trim();
	}

	/** Waits until the service worker has stored the page and the engine. */
	async function waitForWorker(): Promise<void> {
		await page.evaluate(async () => {
			await navigator.serviceWorker.ready;
		});
	}

	test("is isolated by its service worker", async () => {
		assert.equal(await page.evaluate(() => crossOriginIsolated), true);
		assert.ok(server.requests.filter((request) => request === "GET /").length >= 1);
	});

	test("works, page and engine and model, with the server gone and no network", async () => {
		await waitForWorker();
		await context.setOffline(true);
		await server.close();
		await page.reload();
		await page.waitForSelector(READY);
		assert.equal(await page.evaluate(() => crossOriginIsolated), true);
		assert.match(await ask("What is the capital of Japan?"), /\w/);
		await page.click("#new-chat");
		await page.click("#open-about");
		await page.waitForSelector("#about-text p");
	});

	test("keeps models over an update", async () => {
		await waitForWorker();
		const script = join(folder, "service-worker.js");
		const text = await readFile(script, "utf8");
		server.requests.length = 0;
		try {
			await writeFile(script, `${text}\n// a newer version`);
			await page.evaluate(async () => (await navigator.serviceWorker.ready).update());
			await page.waitForSelector("#banner:has-text('A new version of this page is ready')");
			await Promise.all([page.waitForNavigation(), page.click("#banner .button:has-text('Load it')")]);
			await page.waitForSelector(READY);
		} finally {
			await writeFile(script, text);
		}
		assert.ok(!server.requests.includes(WEIGHTS), String(server.requests));
		assert.equal(await page.evaluate(() => crossOriginIsolated), true);
	});

	test("can be installed", async () => {
		const session = await context.newCDPSession(page);
		const { errors, data } = await session.send("Page.getAppManifest");
		assert.deepEqual(errors, []);
		const { name, icons, display } = JSON.parse(data!);
		assert.deepEqual([name, display, icons.length], ["Sterna", "standalone", 4]);
		for (const { src } of icons)
			assert.equal((await page.request.get(`${server.origin}/${src}`)).status(), 200);
		const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
		const other = installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito");
		assert.deepEqual(other, []);
	});

	test("shows what is kept, and deletes it", async () => {
		await page.click("#open-models");
		await page.waitForSelector(".stored-model:has-text('bit-7m')");
		assert.match((await page.textContent("#stored-usage")) ?? "", /MB in all/);
		await page.click(".stored-model:has-text('bit-7m') button:has-text('Delete')");
		await page.waitForSelector("#stored-models:has-text('Nothing yet')");
		await page.click("#models [data-close]");
		assert.match(await ask("What is the capital of Japan?"), /\w/);
		server.requests.length = 0;
		await page.reload();
		await page.waitForSelector(READY);
		assert.ok(server.requests.includes(WEIGHTS), "what was deleted is downloaded again");
	});

	test("asks before a large download, which can be paused", async () => {
		const gguf = await readFile(inRoot("tests", "fixtures", "gguf", "bitnet-c-silu-tq1_0.gguf"));
		const body = Buffer.concat([gguf, Buffer.alloc(70e6)]);
		server.routes.set("/big.gguf", { body, ranges: true, slow: { piece: 100_000, delay: 20 } });
		await page.click("#open-models");
		await page.fill("#model-url", "big.gguf");
		await page.press("#model-url", "Enter");
		await page.waitForSelector("#agree-load");
		assert.match((await page.textContent("#estimate")) ?? "", /71 MB to download.*of memory.*should run/);
		await page.click("#agree-load");
		await page.waitForFunction(() =>
			/Downloading/.test(document.querySelector("#load-label")?.textContent ?? ""),
		);
		await page.click("#pause-load");
		await page.waitForSelector("#load-label:has-text('is paused')");
		await page.click("#pause-load:has-text('Resume')");
		await page.waitForSelector("#load-label:has-text('Downloading')");
		await page.click("#cancel-load");
		await page.click("#open-models");
		await page.waitForSelector(
			".stored-model:has-text('big.gguf'):has-text('interrupted') button:has-text('Resume')",
		);
	});
});
