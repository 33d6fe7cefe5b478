// Threads in Chromium: the packed tarball on pages that may share memory, and on pages that may not.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import type { Browser, CDPSession, Page } from "playwright-core";
import { launch, openPage, serveFolders } from "../support/browser.js";
import { type App, installPacked } from "../support/packed.js";
import { bit7m, inRoot } from "../support/repo.js";
import type { TestServer } from "../support/server.js";

const PAGE = `<!doctype html><title>test</title>
<script type="module">import * as sterna from "/app/node_modules/sterna/index.js"; window.sterna = sterna;</script>`;

let app: App;
let isolated: TestServer;
let plain: TestServer;
let browser: Browser;
let devtools: CDPSession;
let page: Page;

before(async () => {
	app = await installPacked();
	await writeFile(join(app.folder, "page.html"), PAGE);
	const folders = { "/app/": app.folder, "/bit-7m/": inRoot("models", "bit-7m") };
	isolated = await serveFolders(folders);
	plain = await serveFolders(folders, { isolated: false });
	browser = await launch();
	devtools = await browser.newBrowserCDPSession();
});

after(async () => {
	await browser?.close();
	await Promise.all([isolated?.close(), plain?.close()]);
	await app?.remove();
});

beforeEach(async () => {
	await page?.close();
	isolated.requests.length = 0;
	plain.requests.length = 0;
});

/** What a model loaded with these options is, and what it says to the reference's prompts. */
async function answers(options: object) {
	return page.evaluate(
		async ([cases, options]) => {
			const model = await window.sterna.loadModel("/bit-7m/", { kvCache: "f32", ...options });
			const texts: string[] = [];
			for (const { messages, prompt, maxTokens } of cases) {
				const sampling = { temperature: 0, maxTokens };
				const { text } = await (messages
					? model.chat(messages, sampling)
					: model.generate(prompt!, sampling));
				texts.push(text);
			}
			const losses = Array.from((await model.perplexity(texts.join(" "))).losses);
			await model.dispose();
			return { threads: model.info.threads, texts, losses };
		},
		[
			bit7m.cases.map(({ messages, prompt, greedy_ids }) => ({
				messages,
				prompt,
				maxTokens: greedy_ids.length,
			})),
			options,
		] as const,
	);
}

/** The workers that the browser runs, those of workers among them. */
async function workers(): Promise<string[]> {
	const { targetInfos } = await devtools.send("Target.getTargets", { filter: [{ type: "worker" }] });
	return targetInfos.map(({ url }) => url);
}

/** Waits until the browser runs this many workers. */
async function workersBecome(count: number): Promise<void> {
	for (let tries = 0; (await workers()).length !== count; tries += 1) {
		assert.ok(tries < 300, `${count} workers expected, not ${await workers()}`);
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
}

const fetched = (server: TestServer) =>
	server.requests.filter((request) => request.endsWith(".wasm")).map((request) => request.split("/").at(-1));

const cores = availableParallelism();

test("an isolated page's answers do not depend on the threads, and it fetches one build", async () => {
	({ page } = await openPage(browser, `${isolated.origin}/app/page.html`));
	const one = await answers({ threads: 1 });
	assert.equal(one.threads, 1);
	assert.deepEqual(fetched(isolated), ["sterna_relaxed_bg.wasm"]);
	for (const threads of [2, 4, "auto"]) {
		isolated.requests.length = 0;
		const several = await answers({ threads });
		if (typeof threads === "number") assert.equal(several.threads, Math.min(threads, cores));
		assert.deepEqual(several.texts, one.texts);
		assert.deepEqual(several.losses, one.losses);
		assert.deepEqual(
			fetched(isolated),
			several.threads > 1 ? ["sterna_relaxed_threads_bg.wasm"] : ["sterna_relaxed_bg.wasm"],
		);
	}
});

test("a page that may not share memory computes in one thread, whatever it asks for", async () => {
	({ page } = await openPage(browser, `${plain.origin}/app/page.html`));
	for (const threads of ["auto", 4]) assert.equal((await answers({ threads })).threads, 1);
	assert.deepEqual(new Set(fetched(plain)), new Set(["sterna_relaxed_bg.wasm"]));
});

test("in the page itself a model computes in one thread", async () => {
	({ page } = await openPage(browser, `${isolated.origin}/app/page.html`));
	assert.equal((await answers({ threads: 4, worker: false })).threads, 1);
});

test("disposing ends the threads, also within a computation, and the page can load again", async () => {
	({ page } = await openPage(browser, `${isolated.origin}/app/page.html`));
	for (const _ of [1, 2]) {
		const threads = await page.evaluate(async () => {
			window.model = await window.sterna.loadModel("/bit-7m/", { threads: 2 });
			return window.model.info.threads;
		});
		await workersBecome(threads);
		const code = await page.evaluate(async () => {
			const stream = window.model!.generate("Once upon a time,", { maxTokens: 400, ignoreEos: true });
			for await (const _ of stream) {
				if (_.tokenId !== undefined) break;
			}
			const running = window.model!.generate("One day", { maxTokens: 400, ignoreEos: true });
			const outcome = running.then(
				() => "none",
				(error: unknown) => (error as { code: string }).code,
			);
			await window.model!.dispose();
			return outcome;
		});
		assert.equal(code, "aborted");
		await workersBecome(0);
	}
});

test("aborts are obeyed within a step, and the page stays responsive", async () => {
	({ page } = await openPage(browser, `${isolated.origin}/app/page.html`));
	const outcome = await page.evaluate(async () => {
		const model = await window.sterna.loadModel("/bit-7m/", { threads: 2 });
		let last = performance.now();
		let longest = 0;
		const timer = setInterval(() => {
			const now = performance.now();
			longest = Math.max(longest, now - last);
			last = now;
		}, 5);
		const controller = new AbortController();
		let abortedAt = 0;
		let pieces = 0;
		const stream = model.generate("Once upon a time,", {
			maxTokens: 450,
			ignoreEos: true,
			signal: controller.signal,
		});
		let code = "none";
		try {
			for await (const _ of stream) {
				pieces += 1;
				if (pieces !== 100) continue;
				abortedAt = performance.now();
				controller.abort();
			}
		} catch (error) {
			code = (error as { code: string }).code;
		}
		const after = performance.now() - abortedAt;
		clearInterval(timer);
		const { text } = await model.chat([{ role: "user", content: "What sound does a cow make?" }], {
			temperature: 0,
		});
		await model.dispose();
		return { code, after, longest, text };
	});
	assert.equal(outcome.code, "aborted");
	assert.ok(outcome.after < 500, `${outcome.after} ms`);
	assert.ok(outcome.longest < 250, `the page was blocked for ${outcome.longest} ms`);
	assert.equal(outcome.text, "A cow moos.");
});
