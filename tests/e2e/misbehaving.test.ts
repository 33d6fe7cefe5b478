// Servers that misbehave, in Chromium: each load ends, within a bounded time, in the right model or in the right
// error. Whatever happens, the next load from a sound server is right.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launch, serveFolders } from "../support/browser.js";
import { COMMIT, serveRepository } from "../support/fake-hub.js";
import { type App, installPacked } from "../support/packed.js";
import { type RouteOrRule, startServer, type TestServer } from "../support/server.js";
import {
	ANSWER,
	CORS,
	freshPage,
	MODEL,
	requestsFor,
	serveModel,
	TEST_PAGE,
	tryLoad,
	WEIGHTS,
} from "../support/store-page.js";

const BLOCK = 1 << 20;

/** Milliseconds that any of the loads may take, on a slow machine. */
const LIMIT = 40_000;

/** Less patient than the defaults, so that what fails fails soon. */
const OPTIONS = { network: { retries: 2, stallTimeout: 2000 } };

let app: App;
let server: TestServer;
let foreign: TestServer;
let browser: Browser;

before(async () => {
	app = await installPacked();
	await writeFile(join(app.folder, "page.html"), TEST_PAGE);
	server = await serveFolders({ "/app/": app.folder });
	foreign = await startServer();
	browser = await launch();
});

after(async () => {
	await browser?.close();
	await Promise.all([server?.close(), foreign?.close()]);
	await app?.remove();
});

let paths = 0;

/** Runs a test in a page of a profile of its own, with a path on the servers that no other test uses. */
const alone = (run: (page: Page, path: string) => Promise<void>) => async (): Promise<void> => {
	paths += 1;
	const { context, page } = await freshPage(browser, `${server.origin}/app/page.html`);
	try {
		await run(page, `/m${paths}/`);
	} finally {
		await context.close();
	}
};

/** The tests wait for servers more than they compute. */
const SIDE_BY_SIDE = { concurrency: 4 };

/** Whatever happened before, a sound server's model is right afterwards. */
async function recovers(page: Page, path: string): Promise<void> {
	serveModel(server, path);
	const outcome = await tryLoad(page, path, OPTIONS);
	assert.equal(outcome.text, ANSWER, outcome.error?.message);
}

const first = (earlier: number, once: object, then: object = {}) => (earlier === 0 ? once : then);

/** What a load of a model with such weights ends in. */
const right: Record<string, RouteOrRule> = {
	"is sound": {},
	"has no ranges": { ranges: false },
	"tells no length": { chunked: true },
	"compresses everything": { gzip: true },
	"compresses everything and tells no length": { gzip: true, chunked: true },
	"cuts the connection once": ({ earlier }) => first(earlier, { cutAfter: 1.5 * BLOCK }),
	"cuts the connection once and has no ranges": ({ earlier }) =>
		first(earlier, { cutAfter: 1.5 * BLOCK, ranges: false }, { ranges: false }),
	"cuts the connection once and tells no length": ({ earlier }) =>
		first(earlier, { cutAfter: 1.5 * BLOCK, chunked: true }, { chunked: true }),
	"cuts every connection after a while": { cutAfter: 700_000 },
	"stalls once": ({ earlier }) => first(earlier, { stallAfter: 1.5 * BLOCK }),
	"stalls again and again": { stallAfter: 1.5 * BLOCK },
	"does not answer at first": ({ earlier }) => first(earlier, { silent: true }),
	"is overloaded at first": ({ earlier }) => first(earlier, { status: 503, headers: { "Retry-After": "1" } }),
	"asks to slow down at first": ({ earlier }) =>
		first(earlier, { status: 429, headers: { "Retry-After": "1" } }),
	"fails at first": ({ earlier }) => first(earlier, { status: 500 }),
	"drips slowly": { slow: { piece: 30_000, delay: 5 } },
	redirects: ({ path }) =>
		path.startsWith("/m")
			? { status: 302, body: "", ranges: false, headers: { Location: "/elsewhere/model.safetensors" } }
			: {},
	"knows no HEAD": ({ method }) => (method === "HEAD" ? { status: 405 } : {}),
	"gives ranges from the beginning": ({ headers, earlier }) =>
		first(earlier, { cutAfter: 1.5 * BLOCK }, headers.range ? { ranges: false } : {}),
};

describe("a model is right when its server", SIDE_BY_SIDE, () => {
	for (const [what, weights] of Object.entries(right)) {
		test(
			what,
			alone(async (page, path) => {
				serveModel(server, path, weights);
				serveModel(server, "/elsewhere/");
				const outcome = await tryLoad(page, path, OPTIONS);
				assert.equal(outcome.text, ANSWER, outcome.error?.message);
				assert.ok(outcome.duration < LIMIT, `${outcome.duration} ms`);
				const again = await tryLoad(page, path, OPTIONS);
				assert.equal(again.text, ANSWER, again.error?.message);
				assert.ok(again.phases.includes("read") && !again.phases.includes("download"), String(again.phases));
			}),
		);
	}
});

/** What a load fails with. */
const wrong: Record<string, { weights: RouteOrRule; code: string; message: RegExp }> = {
	"has no such file": { weights: { status: 404 }, code: "network", message: /404.*check the address/ },
	"forbids it": { weights: { status: 403 }, code: "network", message: /403.*private or gated/ },
	"wants a login": { weights: { status: 401 }, code: "network", message: /401.*login/ },
	"asks to wait too long": {
		weights: { status: 429, headers: { "Retry-After": "3600" } },
		code: "network",
		message: /429.*asks to wait 3600 s/,
	},
	"stays overloaded": { weights: { status: 503 }, code: "network", message: /503.*later/ },
	"never answers": { weights: { silent: true }, code: "network", message: /sent nothing for 2 s/ },
	"cuts every connection and has no ranges": {
		weights: { cutAfter: 1.5 * BLOCK, ranges: false },
		code: "network",
		message: /was cut after/,
	},
	"stalls always and has no ranges": {
		weights: { stallAfter: 1.5 * BLOCK, ranges: false },
		code: "network",
		message: /sent nothing for 2 s/,
	},
	"gives every answer another ETag and cuts": {
		weights: ({ earlier }) => ({ cutAfter: 1.5 * BLOCK, headers: { ETag: `"${earlier}"` } }),
		code: "network",
		message: /changed on the server/,
	},
	"claims more bytes than it has": {
		weights: { claimedLength: WEIGHTS.length + 1000, ranges: false },
		code: "corrupt_file",
		message: /1000 bytes more than its header lists/,
	},
	"claims fewer bytes than it has": {
		weights: { claimedLength: WEIGHTS.length - 1000 },
		code: "corrupt_file",
		message: /cut short/,
	},
	"gives a page in its place": {
		weights: { body: "<!doctype html><p>Not here", headers: { "Content-Type": "text/html" } },
		code: "network",
		message: /HTML page/,
	},
	"gives an empty file": { weights: { body: "" }, code: "corrupt_file", message: /empty/ },
	"gives another file": {
		weights: { body: "x".repeat(3000) },
		code: "corrupt_file",
		message: /does not start like one/,
	},
	"redirects in circles": {
		weights: ({ path }) => ({ status: 302, body: "", headers: { Location: path } }),
		code: "network",
		message: /could not be fetched/,
	},
};

describe("a load fails, and the next one is right, when the server", SIDE_BY_SIDE, () => {
	for (const [what, { weights, code, message }] of Object.entries(wrong)) {
		test(
			what,
			alone(async (page, path) => {
				serveModel(server, path, weights);
				const outcome = await tryLoad(page, path, OPTIONS);
				assert.equal(outcome.error?.code, code, outcome.error?.message ?? outcome.text);
				assert.match(outcome.error.message, message);
				assert.ok(outcome.duration < LIMIT, `${outcome.duration} ms`);
				await recovers(page, path);
			}),
		);
	}
});

test(
	"a file that changes in the middle of its download is not mixed, and the next load gets the new one",
	alone(async (page, path) => {
		const other = Buffer.from(WEIGHTS);
		other[other.length - 1]! ^= 1;
		serveModel(server, path, ({ earlier }) =>
			earlier === 0 ? { cutAfter: 1.5 * BLOCK } : { body: other, headers: { ETag: '"newer"' } },
		);
		const outcome = await tryLoad(page, path, OPTIONS);
		assert.equal(outcome.error?.code, "network");
		assert.match(outcome.error.message, /changed on the server/);
		const integrity = { "model.safetensors": createHash("sha256").update(other).digest("hex") };
		const again = await tryLoad(page, path, { ...OPTIONS, integrity });
		assert.equal(again.text, ANSWER, again.error?.message);
	}),
);

describe("on another site", SIDE_BY_SIDE, () => {
	test(
		"a server that does not allow this page is a network error that says so",
		alone(async (page, path) => {
			serveModel(foreign, path);
			const outcome = await tryLoad(page, `${foreign.origin}${path}`, OPTIONS);
			assert.equal(outcome.error?.code, "network");
			assert.match(outcome.error.message, /Access-Control-Allow-Origin/);
			assert.ok(outcome.duration < LIMIT);
		}),
	);

	const sites: Record<string, RouteOrRule> = {
		"is sound": {},
		"tells no version": { headers: {} },
		"compresses everything": { gzip: true },
		"cuts once": ({ earlier }) => first(earlier, { cutAfter: 1.5 * BLOCK }),
		"cuts once and has no ranges": ({ earlier }) =>
			first(earlier, { cutAfter: 1.5 * BLOCK, ranges: false }, { ranges: false }),
	};
	for (const [what, weights] of Object.entries(sites)) {
		test(
			`a model is right when its server ${what}`,
			alone(async (page, path) => {
				serveModel(foreign, path, weights, CORS);
				const outcome = await tryLoad(page, `${foreign.origin}${path}`, OPTIONS);
				assert.equal(outcome.text, ANSWER, outcome.error?.message);
				const again = await tryLoad(page, `${foreign.origin}${path}`, OPTIONS);
				assert.equal(again.text, ANSWER, again.error?.message);
				assert.ok(!again.phases.includes("download"), String(again.phases));
			}),
		);
	}
});

test(
	"a mirror is used when the first server fails, also in the middle of a file",
	alone(async (page, path) => {
		const failing: RouteOrRule = ({ earlier }) =>
			earlier === 0 ? { cutAfter: 1.5 * BLOCK } : { status: 500 };
		serveModel(foreign, path, failing, CORS);
		serveModel(server, path, { headers: { ETag: '"of the mirror"' } });
		const integrity = { "model.safetensors": createHash("sha256").update(WEIGHTS).digest("hex") };
		const sources = [`${foreign.origin}${path}`, `${server.origin}${path}`];
		const outcome = await tryLoad(page, sources, { ...OPTIONS, integrity });
		assert.equal(outcome.text, ANSWER, outcome.error?.message);
		assert.ok(outcome.notices.includes("mirror"), String(outcome.notices));
		assert.match(requestsFor(server, `${path}model.safetensors`).at(-1) ?? "", /bytes=[1-9]/);
	}),
);

test(
	"a model of the hub is checked, kept, and loads without the hub afterwards",
	alone(async (page) => {
		const hub = await startServer();
		serveRepository(hub, "owner/repo", { files: { ...MODEL }, large: ["model.safetensors"] });
		const options = { ...OPTIONS, hfEndpoint: hub.origin };
		const outcome = await tryLoad(page, "hf:owner/repo", options);
		assert.equal(outcome.text, ANSWER, outcome.error?.message);
		hub.requests.length = 0;
		const again = await tryLoad(page, "hf:owner/repo", options);
		assert.equal(again.text, ANSWER, again.error?.message);
		assert.deepEqual(hub.requests, ["GET /api/models/owner/repo/revision/main"]);
		await hub.close();
		const offline = await tryLoad(page, "hf:owner/repo", options);
		assert.equal(offline.text, ANSWER, offline.error?.message);
		assert.ok(offline.notices.includes("stale"));
		const [model] = await page.evaluate(() => window.sterna.cache.list());
		assert.equal(model?.source, "hf:owner/repo@main");
		const weights = model?.files.find(({ name }) => name === "model.safetensors");
		assert.equal(weights?.sha256, createHash("sha256").update(WEIGHTS).digest("hex"));
		assert.match(weights?.url ?? "", new RegExp(`/owner/repo/resolve/${COMMIT}/model.safetensors`));

		// A newer commit with other weights: what belonged only to the older one goes.
		const newer = await startServer(undefined, Number(new URL(hub.origin).port));
		const other = Buffer.from(WEIGHTS);
		other[other.length - 1]! ^= 1;
		const files = { ...MODEL, "model.safetensors": other };
		serveRepository(newer, "owner/repo", { files, large: ["model.safetensors"], commit: "f".repeat(40) });
		const updated = await tryLoad(page, "hf:owner/repo", options);
		await newer.close();
		assert.equal(updated.text, ANSWER, updated.error?.message);
		const [after, ...others] = await page.evaluate(() => window.sterna.cache.list());
		assert.deepEqual(others, []);
		assert.deepEqual(after?.files.length, model?.files.length);
		assert.ok(
			after?.files.every(({ url }) => !url.includes(COMMIT)),
			JSON.stringify(after?.files),
		);
	}),
);
