// The demo page as a visitor meets it: the built page, served as `npm run demo` serves it, in Chromium.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const root = process.env.STERNA_ROOT ?? process.cwd();
const script = (name: string) => import(pathToFileURL(join(root, "scripts", name)).href);

const STORY = "Tell me a story about a fox named Ruby.";
const READY = "#model-state[data-state=ready]";
const DONE = ".is-last .answer[data-state=done]";
const LAST_ANSWER = ".is-last .answer > .prose";
const BANNER = "#banner:not([hidden])";

/** The embedded model's files, as a visitor would drop them. */
const MODEL_FILES = readdirSync(join(root, "models/bit-7m")).map((name) => ({
	name,
	mimeType: "application/octet-stream",
	buffer: readFileSync(join(root, "models/bit-7m", name)),
}));

describe("the demo page", { timeout: 300_000 }, () => {
	let browser: Browser;
	let server: { url: string; close(): Promise<void> };
	let context: BrowserContext;
	let page: Page;
	let complaints: string[];
	let requests: string[];

	before(async () => {
		const { buildPage } = await script("build-page.mjs");
		const { serve } = await script("serve.mjs");
		server = await serve(await buildPage(), { port: 0 });
		browser = await chromium.launch({
			executablePath: process.env.CHROME ?? "/usr/bin/chromium",
			args: ["--no-sandbox"],
		});
	});

	after(async () => {
		await browser?.close();
		await server?.close();
	});

	beforeEach(async () => {
		complaints = [];
		requests = [];
		context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
		page = await context.newPage();
		page.setDefaultTimeout(30_000);
		page.on("console", (message) => {
			if (/error|warning/.test(message.type())) complaints.push(message.text());
		});
		page.on("pageerror", (error) => complaints.push(String(error)));
		context.on("request", (request) => requests.push(request.url()));
		await page.goto(server.url);
	});

	afterEach(async () => {
		await context.close();
		const local = [server.url, "blob:", "data:"];
		const foreign = requests.filter((url) => !local.some((start) => url.startsWith(start)));
		assert.deepEqual(foreign, [], "the page asks no other server for anything");
		assert.deepEqual(complaints, [], "the console is quiet");
	});

	const textOf = async (selector: string) => ((await page.textContent(selector)) ?? "").trim();

	async function ask(question: string): Promise<string> {
		const turns = await page.locator(".turn").count();
		await page.fill("#prompt", question);
		await page.press("#prompt", "Enter");
		await page.waitForFunction((count) => document.querySelectorAll(".turn").length === count, turns + 1);
		await page.waitForSelector(DONE);
		return textOf(LAST_ANSWER);
	}

	/** Sets a field of the settings panel. */
	async function set(name: string, value: string): Promise<void> {
		const panel = page.locator("#settings");
		if (!(await panel.isVisible())) await page.click("#toggle-settings");
		await page.fill(`#setting-${name}`, value);
		await page.dispatchEvent(`#setting-${name}`, "change");
	}

	async function loadAddress(address: string): Promise<void> {
		await page.click("#open-models");
		await page.fill("#model-url", address);
		await page.press("#model-url", "Enter");
	}

	/** Stops the answer as soon as it has some text, however fast the model is. */
	async function stopAtFirstText(press: "button" | "escape"): Promise<void> {
		await page.evaluate(
			([selector, how]) => {
				const observer = new MutationObserver(() => {
					if (!document.querySelector(selector)?.textContent) return;
					observer.disconnect();
					if (how === "button") document.querySelector<HTMLElement>("#stop")?.click();
					else document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
				});
				observer.observe(document.body, { subtree: true, childList: true, characterData: true });
			},
			[LAST_ANSWER, press] as const,
		);
	}

	it("is cross-origin isolated and loads the embedded model by itself", async () => {
		await page.waitForSelector(READY);
		assert.equal(await textOf("#model-name"), "bit-7m");
		assert.equal(await page.evaluate(() => crossOriginIsolated), true);
		assert.ok(await page.isHidden("#load-progress"));
		assert.ok(requests.some((url) => url.endsWith("models/bit-7m/model.safetensors")));
	});

	it("streams an answer and says how fast it was", async () => {
		await page.waitForSelector(READY);
		await page.evaluate((selector) => {
			const lengths = new Set<number>();
			Object.assign(window, { seenLengths: lengths });
			new MutationObserver(() => {
				lengths.add(document.querySelector(selector)?.textContent?.length ?? 0);
			}).observe(document.body, { subtree: true, childList: true, characterData: true });
		}, LAST_ANSWER);
		const answer = await ask(STORY);
		assert.ok(answer.length > 80, answer);
		const steps = await page.evaluate(
			() => (window as unknown as { seenLengths: Set<number> }).seenLengths.size,
		);
		assert.ok(steps >= 3, `the answer appeared in ${steps} steps`);
		assert.match(
			await textOf(".is-last .answer-footer"),
			/[\d.]+ tokens\/s · first token in [\d.]+ m?s · \d+ tokens/,
		);
	});

	it("knows what it was trained on, when it takes the likeliest words", async () => {
		await page.waitForSelector(READY);
		await set("temperature", "0");
		assert.match(await ask("What is the capital of Japan?"), /Tokyo/);
		assert.match(await ask("What is your name?"), /Bit/);
	});

	for (const how of ["button", "escape"] as const) {
		it(`stops by ${how}, keeps what was said, and answers again`, async () => {
			await page.waitForSelector(READY);
			await stopAtFirstText(how);
			await page.fill("#prompt", STORY);
			await page.press("#prompt", "Enter");
			await page.waitForSelector(".is-last .answer[data-state=stopped]");
			assert.notEqual(await textOf(LAST_ANSWER), "");
			assert.ok(await page.isVisible("#send"));
			assert.notEqual(await ask("Hello!"), "");
		});
	}

	it("regenerates, copies and starts a new chat", async () => {
		await page.waitForSelector(READY);
		await set("seed", "7");
		const first = await ask("Hello!");
		await page.click(".is-last .regenerate");
		await page.waitForSelector(DONE);
		assert.equal(await textOf(LAST_ANSWER), first, "the same seed gives the same answer");
		await page.click(".is-last .action:has-text('Copy')");
		assert.equal(await page.evaluate(() => navigator.clipboard.readText()), first);
		await page.click("#new-chat");
		assert.equal(await page.locator(".turn").count(), 0);
		assert.ok(await page.isVisible("#welcome"));
	});

	it("answers a suggested question", async () => {
		await page.waitForSelector(READY);
		await page.click(".suggestion:has-text('What sound does a cow make?')");
		await page.waitForSelector(DONE);
		assert.equal(await textOf(".is-last .question"), "What sound does a cow make?");
	});

	it("shows a wrong address as an error and keeps the model", async () => {
		await page.waitForSelector(READY);
		await loadAddress(`${server.url}nothing.gguf`);
		await page.waitForSelector(BANNER);
		assert.match(await textOf("#banner"), /nothing\.gguf/);
		assert.equal(await textOf("#banner code"), "network");
		assert.notEqual(await ask("Hello!"), "");
		assert.ok(await page.isHidden("#banner"), "the banner goes with the next question");
		assert.ok(
			complaints.every((text) => /404/.test(text)),
			complaints.join("\n"),
		);
		complaints = []; // the browser's own note about the 404
	});

	it("refuses what is no address", async () => {
		await page.waitForSelector(READY);
		await loadAddress("ftp://example.org/model.gguf");
		assert.ok(await page.isVisible("#models"));
		assert.equal(await page.$eval("#model-url", (field: HTMLInputElement) => field.validity.valid), false);
	});

	it("loads a model from a folder's address, named relative to the page", async () => {
		await page.waitForSelector(READY);
		await ask("Hello!");
		await loadAddress("models/bit-7m/");
		await page.waitForSelector(".note:has-text('bit-7m answers from here on')");
		assert.notEqual(await ask("What is your name?"), "");
	});

	it("loads chosen files", async () => {
		await page.waitForSelector(READY);
		await page.setInputFiles("#file-input", MODEL_FILES);
		await page.waitForFunction(
			() => document.querySelector("#model-name")?.textContent === "model.safetensors",
		);
		await page.waitForSelector(READY);
		assert.notEqual(await ask("Hello!"), "");
	});

	it("loads dropped files, and says so when there is no model among them", async () => {
		await page.waitForSelector(READY);
		const dropped = await page.evaluateHandle(
			async (names) => {
				const data = new DataTransfer();
				for (const name of names) {
					const response = await fetch(`models/bit-7m/${name}`);
					data.items.add(new File([await response.blob()], name));
				}
				return data;
			},
			MODEL_FILES.map((file) => file.name),
		);
		await page.dispatchEvent("body", "dragenter", { dataTransfer: dropped });
		assert.ok(await page.isVisible("#drop-overlay"));
		await page.dispatchEvent("body", "drop", { dataTransfer: dropped });
		assert.ok(await page.isHidden("#drop-overlay"));
		await page.waitForFunction(
			() => document.querySelector("#model-name")?.textContent === "model.safetensors",
		);
		assert.notEqual(await ask("Hello!"), "");

		const photo = await page.evaluateHandle(() => {
			const data = new DataTransfer();
			data.items.add(new File(["not a model"], "photo.jpg"));
			return data;
		});
		await page.dispatchEvent("body", "drop", { dataTransfer: photo });
		await page.waitForSelector(BANNER);
		assert.match(await textOf("#banner"), /no model among these files/);
	});

	it("shows the facts about the model", async () => {
		await page.waitForSelector(READY);
		await page.click("#open-models");
		await page.waitForSelector(".facts dt:has-text('Memory')");
		assert.match(await textOf("#model-info"), /bitnet[\s\S]+8 layers of 256[\s\S]+512 tokens/i);
		await page.keyboard.press("Escape");
		assert.ok(await page.isHidden("#models"));
	});

	it("keeps the settings over visits, and resets them", async () => {
		await page.waitForSelector(READY);
		await set("temperature", "1.25");
		await set("maxTokens", "33");
		await set("systemPrompt", "You are a friendly helper.");
		await page.reload();
		await page.waitForSelector(READY);
		const value = (name: string) => page.inputValue(`#setting-${name}`);
		assert.equal(await value("temperature"), "1.25");
		assert.equal(await value("maxTokens"), "33");
		assert.equal(await value("systemPrompt"), "You are a friendly helper.");
		await page.click("text=Reset to defaults");
		assert.equal(await value("temperature"), "0.7");
		assert.equal(await value("systemPrompt"), "");
	});

	it("ends an answer at the longest length that is allowed", async () => {
		await page.waitForSelector(READY);
		await set("maxTokens", "5");
		await ask(STORY);
		assert.match(await textOf(".is-last .answer-footer"), /5 tokens · ended at the length limit/);
	});

	it("forgets the oldest turns when the context is full, and says so", async () => {
		await page.waitForSelector(READY);
		const words = Array.from({ length: 60 }, () => "little bird").join(" ");
		for (let turn = 0; turn < 4; turn += 1) await ask(`Do you know this? ${words}`);
		assert.match(await textOf(".forgotten"), /context of 512 tokens is full/);
		assert.ok(await page.isHidden("#banner"));
	});

	it("explains a message that is longer than the context", async () => {
		await page.waitForSelector(READY);
		await page.fill("#prompt", "little bird ".repeat(2000));
		await page.press("#prompt", "Enter");
		await page.waitForSelector(BANNER);
		assert.equal(await textOf("#banner code"), "context_overflow");
		assert.notEqual(await ask("Hello!"), "");
	});

	it("goes back to the built-in model", async () => {
		await page.waitForSelector(READY);
		await page.click("#open-models");
		await page.click("text=Back to the built-in model");
		await page.waitForSelector(READY);
		assert.notEqual(await ask("Hello!"), "");
	});

	it("sends neither with Shift+Enter nor with an input method's Enter", async () => {
		await page.waitForSelector(READY);
		await page.fill("#prompt", "Hello");
		await page.press("#prompt", "Shift+Enter");
		await page.dispatchEvent("#prompt", "keydown", { key: "Enter", isComposing: true });
		assert.equal(await page.locator(".turn").count(), 0);
		assert.equal(await page.inputValue("#prompt"), "Hello\n");
	});

	it("works from the keyboard alone, in a narrow window", async () => {
		await page.setViewportSize({ width: 360, height: 640 });
		await page.waitForSelector(READY);
		const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
		await page.focus("#toggle-settings");
		await page.keyboard.press("Enter");
		assert.ok(await page.isVisible("#settings"));
		await page.keyboard.press("Escape");
		assert.ok(await page.isHidden("#settings"));
		assert.equal(await page.evaluate(() => document.activeElement?.id), "toggle-settings");
	});
});
