import assert from "node:assert/strict";
import { test } from "node:test";
import { SternaError } from "../../pkg-template/src/errors.js";
import { loadModelIn } from "../../pkg-template/src/load-model.js";
import { localHost } from "../../pkg-template/src/local-host.js";
import { threadCount } from "../../pkg-template/src/threads/count.js";
import { type FakeStart, fakeWasm } from "../support/fake-wasm.js";

const bytes = new TextEncoder().encode("GGUF");

async function load(threads: number, start?: FakeStart) {
	const { platform, log } = fakeWasm(threads, start);
	const host = localHost(platform);
	return { log, loading: loadModelIn({ hasFileSystem: false, host: () => host }, bytes, {}) };
}

test("the number of threads fits the machine", () => {
	const auto = [1, 2, 3, 4, 6, 8, 12, 16, 64].map((cores) => threadCount("auto", cores));
	assert.deepEqual(auto, [1, 2, 2, 3, 3, 4, 6, 8, 8]);
	assert.equal(threadCount(2, 8), 2);
	assert.equal(threadCount(64, 8), 8);
	assert.equal(threadCount(1, 8), 1);
});

test("each thread but the engine's own gets a seat, and ends with the model", async () => {
	const { log, loading } = await load(4);
	const model = await loading;
	assert.deepEqual(log.seats, [100, 101, 102]);
	assert.equal(log.loaderOptions?.threads, 4);
	assert.equal(model.info.threads, 4);
	await model.dispose();
	assert.deepEqual([log.freed, log.terminated], [["model"], 3]);
});

test("threads are ended from outside when the module's state is lost", async () => {
	const { log, loading } = await load(3);
	const model = await loading;
	await assert.rejects(async () => await model.generate("!"), { code: "internal" });
	assert.equal(log.terminated, 2);
	await model.dispose();
	assert.deepEqual(log.freed, []);
});

test("a thread that does not start fails the load, which says what to do", async () => {
	for (const [start, code] of [
		[{ type: "error", message: "its script could not be loaded" }, "network"],
		[{ type: "failed", message: "no memory" }, "internal"],
	] as const) {
		const { log, loading } = await load(3, start);
		await assert.rejects(loading, (error) => {
			assert.ok(error instanceof SternaError);
			assert.equal(error.code, code);
			assert.match(error.message, /threads: 1/);
			return true;
		});
		assert.deepEqual([log.freed, log.terminated], [["loader"], 2]);
	}
});
