// A real model, end to end in Chromium: SmolLM2-135M-Instruct from its GGUF file, against llama.cpp.

import assert from "node:assert/strict";
import { basename, dirname } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launch, openPage, serveFolders } from "../support/browser.js";
import { fileFromEnvironment, inRoot, smollm2 } from "../support/repo.js";
import type { TestServer } from "../support/server.js";

const PAGE = `<!doctype html><title>test</title>
<script type="module">import * as sterna from "/pkg/index.js"; window.sterna = sterna;</script>`;

let server: TestServer;
let browser: Browser;
let page: Page;

before(async () => {
	const path = fileFromEnvironment("STERNA_SMOLLM2");
	server = await serveFolders({ "/pkg/": inRoot("pkg"), "/model/": dirname(path) });
	server.routes.set("/", {
		body: PAGE,
		headers: {
			"Content-Type": "text/html",
			"Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Embedder-Policy": "require-corp",
		},
	});
	browser = await launch();
	({ page } = await openPage(browser, server.origin));
	await page.evaluate(
		async (url) => {
			window.model = await window.sterna.loadModel(url, { contextLength: 512 });
		},
		`/model/${basename(path)}`,
	);
});

after(async () => {
	await browser?.close();
	await server?.close();
});

test("it knows the capital of France, with the tokens of llama.cpp", async () => {
	const { ids, result } = await page.evaluate(async () => {
		const model = window.model!;
		const prompt = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n";
		const ids = await model.tokenize(prompt, { addSpecialTokens: false });
		return { ids: Array.from(ids), result: await model.generate(Array.from(ids), { temperature: 0 }) };
	});
	assert.deepEqual(ids, smollm2.prompt_ids);
	assert.deepEqual([...result.tokenIds, result.stopToken], smollm2.greedy_ids);
	assert.equal(`${result.text}<|im_end|>`, smollm2.text);
	const chat = await page.evaluate(async () => {
		const messages = [{ role: "user", content: "What is the capital of France?" }];
		return (await window.model!.chat(messages, { temperature: 0, maxTokens: 20 })).text;
	});
	assert.match(chat, /Paris/);
});

test("emoji and Chinese characters that are split over tokens arrive whole", async () => {
	for (const prompt of ["🌍🎉🌍🎉🌍🎉🌍🎉", "你好,世界。你好,世界。你好,世界。"]) {
		const pieces = await page.evaluate(async (prompt) => {
			const pieces: string[] = [];
			const stream = window.model!.generate(prompt, { temperature: 0, maxTokens: 14, ignoreEos: true });
			for await (const { text, tokenId } of stream) if (tokenId !== undefined) pieces.push(text);
			return pieces;
		}, prompt);
		assert.ok(pieces.includes(""), "some tokens end inside a character");
		assert.ok(pieces.some((text) => /[🌍🎉你好世界]/u.test(text)));
		// Half of a surrogate pair, or the replacement character, would be a broken character.
		for (const text of pieces) assert.doesNotMatch(text, /\p{Surrogate}|\ufffd/u);
	}
});
