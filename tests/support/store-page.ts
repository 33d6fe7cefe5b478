// A page with the package in a browser profile of its own, and what the tests of the model store do with it.

import { readFileSync } from "node:fs";
import type { Browser, BrowserContext, Page } from "playwright-core";
import type { LoadProgress } from "../../pkg-template/src/types.js";
import { inRoot } from "./repo.js";
import type { Route, RouteOrRule, TestServer } from "./server.js";

/** A page that sets `window.sterna` from the app's installed package. */
export const TEST_PAGE = `<!doctype html><title>test</title>
<script type="importmap">{ "imports": { "sterna": "/app/node_modules/sterna/index.js" } }</script>
<script type="module">import * as sterna from "sterna"; window.sterna = sterna;</script>`;

/** The embedded model's files by name. */
export const MODEL = Object.fromEntries(
	["config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json"]
		.concat("tokenizer.json", "tokenizer_config.json")
		.map((name) => [name, readFileSync(inRoot("models", "bit-7m", name))]),
);

export const WEIGHTS = MODEL["model.safetensors"]!;

/** Lets pages of other sites read what a server sends. */
export const CORS = { "Access-Control-Allow-Origin": "*" };

/**
 * Serves the embedded model under a path; `weights` says how its weights are served, and `headers` come with every
 * file.
 */
export function serveModel(
	server: TestServer,
	path: string,
	weights: RouteOrRule = {},
	headers: Record<string, string> = {},
): void {
	for (const [name, body] of Object.entries(MODEL)) {
		const isWeights = name === "model.safetensors";
		server.routes.set(path + name, (asked): Route => {
			const special = isWeights ? (typeof weights === "function" ? weights(asked) : weights) : {};
			const route = { body, ranges: true, headers: { ETag: `"${name}"` }, ...special };
			return { ...route, headers: { ...route.headers, ...headers } };
		});
	}
}

/** How a load went. */
export interface Outcome {
	/** What the model answered. */
	text?: string;
	error?: { code: string; message: string };
	phases: LoadProgress["phase"][];
	notices: string[];
	last?: LoadProgress;
	duration: number;
}

/** What the loaded embedded model is asked, and what it answers. */
const QUESTION = "What is the capital of Japan?";
export const ANSWER = "The capital of Japan is Tokyo.";

/** Loads a model in a page, asks it something and disposes of it. */
export function tryLoad(page: Page, source: string | string[], options: object = {}): Promise<Outcome> {
	return page.evaluate(
		async ([source, options, question]) => {
			const progress: LoadProgress[] = [];
			const start = performance.now();
			const outcome: Outcome = { phases: [], notices: [], duration: 0 };
			try {
				const model = await window.sterna.loadModel(source, {
					...options,
					onProgress: (step) => progress.push(step),
				});
				const { text } = await model.chat([{ role: "user", content: question }], { temperature: 0 });
				await model.dispose();
				outcome.text = text;
			} catch (error) {
				const { code = "none", message } = error as Error & { code?: string };
				outcome.error = { code, message };
			}
			outcome.phases = [...new Set(progress.map(({ phase }) => phase))];
			outcome.notices = progress.flatMap(({ notice }) => notice?.code ?? []);
			outcome.last = progress.at(-1);
			outcome.duration = performance.now() - start;
			return outcome;
		},
		[source, options, QUESTION] as const,
	);
}

/** A page in a profile of its own. */
export async function freshPage(
	browser: Browser,
	url: string,
): Promise<{ context: BrowserContext; page: Page }> {
	const context = await browser.newContext();
	return { context, page: await sternaPage(context, url) };
}

/** A further page of a profile. */
export async function sternaPage(context: BrowserContext, url: string): Promise<Page> {
	const page = await context.newPage();
	await page.goto(url);
	await page.waitForFunction("window.sterna !== undefined");
	return page;
}

/** What was asked of the server for one file. */
export const requestsFor = (server: TestServer, path: string) =>
	server.requests.filter((request) => request.split(" ")[1] === path);
