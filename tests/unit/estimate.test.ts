// What a load would take, and what is advised where that is too much.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { estimateIn } from "../../pkg-template/src/load-model.js";
import { localHost } from "../../pkg-template/src/local-host.js";
import type { EstimateOptions, ModelSource } from "../../pkg-template/src/types.js";
import { fakeWasm } from "../support/fake-wasm.js";
import { startServer, type TestServer } from "../support/server.js";

let server: TestServer;
let fake: ReturnType<typeof fakeWasm>;

before(async () => {
	server = await startServer();
});
after(() => server.close());
beforeEach(() => {
	fake = fakeWasm();
	server.reset();
});

const estimate = (source: ModelSource, options: EstimateOptions = {}) =>
	estimateIn({ hasFileSystem: true, host: () => localHost(fake.platform) }, source, options);

const GIB = 2 ** 30;
const MODEL = { body: `GGUF${"x".repeat(1000)}`, ranges: true };

test("a model that fits needs no advice", async () => {
	server.routes.set("/m.gguf", MODEL);
	fake.log.memory = { weights: GIB, kvCache: 2 ** 20, contextLength: 4096, total: GIB + 2 ** 20 };
	const found = await estimate(`${server.origin}/m.gguf`);
	assert.equal(found.fits, true);
	assert.deepEqual(found.advice, []);
	assert.equal(found.totalBytes, 1004);
	assert.equal(found.downloadBytes, 1004);
	assert.deepEqual(found.files, [{ name: "m.gguf", size: 1004, cachedBytes: 0 }]);
	assert.equal(found.memory?.total, found.memory!.weights + found.memory!.kvCache + found.memory!.engine);
});

test("a context that is too long is told, with the length that fits", async () => {
	server.routes.set("/m.gguf", MODEL);
	fake.log.memory = { weights: 2 * GIB, kvCache: 4 * GIB, contextLength: 65536, total: 6 * GIB };
	const found = await estimate(`${server.origin}/m.gguf`, { kvCache: "f32" });
	assert.equal(found.fits, false);
	const [excess, length, format] = found.advice;
	assert.match(excess!, /6\.5 GB of memory.*more than this device can give/);
	const tokens = Number(/'contextLength' to (\d+)/.exec(length!)?.[1]);
	assert.ok(tokens > 10_000 && tokens < 65536, length);
	assert.match(format!, /'kvCache' to "q16"/);
});

test("weights that are too large are told", async () => {
	server.routes.set("/m.gguf", MODEL);
	fake.log.memory = { weights: 5 * GIB, kvCache: GIB, contextLength: 4096, total: 6 * GIB };
	const found = await estimate(`${server.origin}/m.gguf`, { embedding: "f16" });
	assert.equal(found.fits, false);
	assert.ok(!found.advice.some((text) => text.includes("contextLength")));
	assert.match(found.advice.join(" "), /'embedding' to "q8".*smaller model: the weights alone do not fit/);
});

test("files at hand need no download", async () => {
	fake.log.memory = { weights: 1, kvCache: 1, contextLength: 1, total: 2 };
	const found = await estimate(new Blob([MODEL.body]));
	assert.equal(found.downloadBytes, 0);
	assert.equal(found.totalBytes, 1004);
});
