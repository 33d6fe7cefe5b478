import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError, SternaError } from "../../pkg-template/src/errors.js";
import { loadModelIn } from "../../pkg-template/src/load-model.js";
import { localHost } from "../../pkg-template/src/local-host.js";
import type { Model } from "../../pkg-template/src/model.js";
import type { GenerationOptions } from "../../pkg-template/src/types.js";
import { type WorkerLike, workerHost } from "../../pkg-template/src/worker/client.js";
import { type Port, serve } from "../../pkg-template/src/worker/server.js";
import { fakeWasm, VOCAB } from "../support/fake-wasm.js";

const bytes = new TextEncoder().encode("GGUF");

/** A worker's two ends in this thread: messages are cloned and arrive later, as between real threads. */
function fakeWorker(host: Parameters<typeof serve>[1]): { worker: WorkerLike; crash(message: string): void } {
	const port: Port = {
		onmessage: null,
		postMessage: (message, transfer) => deliver(() => worker.onmessage, message, transfer),
	};
	let isAlive = true;
	function deliver(to: () => unknown, message: unknown, transfer: Transferable[]) {
		const data = structuredClone(message, { transfer });
		setImmediate(() => isAlive && (to() as ((event: unknown) => void) | null)?.({ data }));
	}
	const worker = {
		onmessage: null,
		onerror: null,
		onmessageerror: null,
		postMessage: (message: unknown) => deliver(() => port.onmessage, message, []),
		terminate() {
			isAlive = false;
		},
	} as WorkerLike;
	serve(port, host);
	return {
		worker,
		crash: (message) => (worker.onerror as unknown as (event: unknown) => void)({ message }),
	};
}

async function localModel() {
	const { platform, log } = fakeWasm();
	const host = localHost(platform);
	return { log, model: await loadModelIn({ hasFileSystem: false, host: () => host }, bytes, {}) };
}

async function workerModel() {
	const { platform, log } = fakeWasm();
	const { worker, crash } = fakeWorker(localHost(platform));
	const host = workerHost(() => worker, "https://example.org/worker.js");
	return { log, crash, model: await loadModelIn({ hasFileSystem: false, host: () => host }, bytes, {}) };
}

const hasCode =
	(code: string, message = /./) =>
	(error: unknown) => {
		assert.ok(error instanceof SternaError, String(error));
		assert.equal(error.code, code);
		assert.match(error.message, message);
		return true;
	};

async function collect(stream: AsyncIterable<{ text: string }>): Promise<string> {
	let all = "";
	for await (const { text } of stream) all += text;
	return all;
}

for (const [place, create] of [
	["in-process", localModel],
	["in a worker", workerModel],
] as const) {
	test(`${place}: a stream is an iterable and a promise`, async () => {
		const { model } = await create();
		const stream = model.generate("hello");
		assert.equal(await collect(stream), "hello");
		assert.equal(await collect(stream), "hello", "a second loop sees the same");
		const result = await stream;
		assert.equal(result.text, "hello");
		assert.deepEqual(result.tokenIds, [104, 101, 108, 108, 111]);
		assert.equal(result.finishReason, "length");
		assert.deepEqual(result.usage, {
			promptTokens: 5,
			completionTokens: 5,
			cachedTokens: 0,
			totalTokens: 10,
		});
		assert.ok(result.timing.timeToFirstToken >= 0 && result.timing.total >= result.timing.timeToFirstToken);
		assert.equal((await model.generate([97, 98])).text, "ab");
		assert.equal((await model.chat([{ role: "user", content: "hi" }])).text, "user:hi");
	});

	test(`${place}: two loops at once, and awaiting meanwhile`, async () => {
		const { model } = await create();
		const stream = model.generate("abc", { maxTokens: 50 });
		const [one, two, result] = await Promise.all([collect(stream), collect(stream), stream]);
		assert.equal(one, result.text);
		assert.equal(two, result.text);
		assert.equal(result.text.length, 50);
	});

	test(`${place}: leaving the loop aborts, and keeps what there was`, async () => {
		const { model } = await create();
		const stream = model.generate("abc", { maxTokens: 1_000_000 });
		let seen = "";
		for await (const { text } of stream) {
			seen += text;
			if (seen.length === 10) break;
		}
		await assert.rejects(stream.finally(), (error: unknown) => {
			assert.ok(error instanceof AbortedError);
			assert.equal(error.name, "AbortError");
			assert.ok(error.partialText.startsWith(seen) && error.partialText.length < 1000);
			return true;
		});
		assert.equal((await model.generate("ok")).text, "ok", "the model is usable");
	});

	test(`${place}: abort(), signals, and jobs that wait`, async () => {
		const { model } = await create();
		const long = model.generate("abc", { maxTokens: 1_000_000 });
		const controller = new AbortController();
		const waiting = model.generate("xyz", { signal: controller.signal });
		const after = model.generate("after");
		controller.abort("not needed any more");
		await assert.rejects(async () => await waiting, hasCode("aborted", /not needed any more/));
		await assert.rejects(collect(waiting), hasCode("aborted"));
		long.abort("enough");
		await assert.rejects(collect(long), hasCode("aborted", /enough/));
		assert.equal((await after).text, "after");
		const early = model.generate("abc", { signal: AbortSignal.abort() });
		await assert.rejects(async () => await early, hasCode("aborted"));
	});

	test(`${place}: a stream that nobody listens to raises nothing`, async () => {
		const { model } = await create();
		model.generate("abc", { maxTokens: 1_000_000 }).abort();
		model.generate("x".repeat(2000));
		assert.equal((await model.generate("ok")).text, "ok");
	});

	test(`${place}: errors keep their codes, and the model stays usable`, async () => {
		const { model } = await create();
		const stream = model.generate("x".repeat(2000));
		await assert.rejects(async () => await stream, hasCode("context_overflow", /too long/));
		await assert.rejects(collect(stream), hasCode("context_overflow"));
		assert.equal((await model.generate("ok")).text, "ok");
	});

	test(`${place}: after a trap every call fails`, async () => {
		const { model } = await create();
		await assert.rejects(async () => await model.generate("a!"), hasCode("internal", /Load the model again/));
		await assert.rejects(model.tokenize("a"), hasCode("internal"));
		await model.dispose();
	});

	test(`${place}: text, tokens and evaluations`, async () => {
		const { model } = await create();
		assert.deepEqual(await model.tokenize("ab"), Uint32Array.of(97, 98));
		assert.equal(await model.detokenize([97, 98]), "ab");
		assert.equal(await model.countTokens("abc"), 3);
		assert.equal(await model.countTokens([{ role: "user", content: "hi" }]), 7);
		assert.equal(await model.applyChatTemplate([{ role: "user", content: "hi" }]), "user:hi");
		const steps: number[] = [];
		const rows = await model.logits([1, 2, 3], { onProgress: ({ done }) => steps.push(done) });
		assert.deepEqual(
			rows.map((row) => [row.length, row[0]]),
			[
				[VOCAB, 0],
				[VOCAB, 1],
				[VOCAB, 2],
			],
		);
		assert.deepEqual(steps, [1, 2, 3]);
		const { loss, perplexity, tokens } = await model.perplexity("abcd");
		assert.deepEqual([loss, tokens], [2, 3]);
		assert.ok(Math.abs(perplexity - Math.exp(2)) < 1e-9);
		await assert.rejects(model.perplexity("a"), hasCode("invalid_argument", /two tokens/));
		await assert.rejects(
			model.logits(new Array(500).fill(1), { signal: AbortSignal.timeout(1) }),
			hasCode("aborted"),
		);
	});

	test(`${place}: statistics`, async () => {
		const { model } = await create();
		await model.generate("abc");
		const stats = await model.stats();
		assert.deepEqual(stats.memory, { weights: 1, kvCache: 2, wasm: 8 });
		assert.deepEqual([stats.generations, stats.promptTokens, stats.completionTokens], [1, 3, 3]);
		assert.ok(stats.lastTiming);
		assert.equal(model.info.device, "wasm");
	});

	test(`${place}: disposing aborts what runs, and ends the model`, async () => {
		const { model, log } = await create();
		const stream = model.generate("abc", { maxTokens: 1_000_000 });
		for await (const _ of stream) {
			await model.dispose();
			break;
		}
		await assert.rejects(
			async () => await stream,
			(error: unknown) => {
				assert.ok(error instanceof AbortedError && /disposed/.test(error.message));
				assert.equal(error.partialText, stream.text);
				return error.partialText.length > 0;
			},
		);
		assert.throws(() => model.generate("x"), hasCode("invalid_argument", /disposed/));
		await assert.rejects(model.stats(), hasCode("invalid_argument", /disposed/));
		await model[Symbol.asyncDispose]();
		if (place === "in-process") assert.deepEqual(log.freed, ["model"]);
	});
}

test("after a trap the other models of the instance are lost, and the next load gets a fresh one", async () => {
	const { platform, log } = fakeWasm();
	const host = localHost(platform);
	const load = (source = bytes) => loadModelIn({ hasFileSystem: false, host: () => host }, source, {});
	const [first, second] = [await load(), await load()];
	const running = second.generate("abc", { maxTokens: 1_000_000 });
	await assert.rejects(async () => await first.generate("a!"), hasCode("internal", /engine stopped/));
	await assert.rejects(async () => await running, hasCode("internal", /engine stopped/));
	await assert.rejects(second.stats(), hasCode("internal"));
	const third = await load();
	assert.equal((await third.generate("ok")).text, "ok");
	await Promise.all([first.dispose(), second.dispose()]);
	assert.deepEqual(log.freed, [], "nothing of the lost instance is freed");
	assert.deepEqual([log.instantiated, log.resets], [1, 1]);
	await assert.rejects(load(new TextEncoder().encode("GGUF PANIC")), hasCode("internal"));
	await assert.rejects(third.tokenize("x"), hasCode("internal"));
	await load(new TextEncoder().encode("GGUF"));
	await assert.rejects(load(new TextEncoder().encode("GGUF DEEP")), hasCode("internal", /engine stopped/));
	assert.equal((await (await load()).generate("ok")).text, "ok");
	assert.deepEqual([log.freed, log.resets], [[], 3]);
});

test("options that do not exist, or are wrong, are refused at once", async () => {
	const { model } = await localModel();
	const wrong = (options: object, message: RegExp) =>
		assert.throws(
			() => model.generate("x", options as GenerationOptions),
			hasCode("invalid_argument", message),
		);
	wrong({ max_tokens: 3 }, /no option 'max_tokens'/);
	wrong({ logprobs: true }, /no option 'logprobs'/);
	wrong({ maxTokens: 0 }, /maxTokens/);
	wrong({ temperature: Number.NaN }, /temperature/);
	wrong({ temperature: 101 }, /from 0 to 100/);
	wrong({ repetitionPenalty: 0 }, /from 0.01 to 100/);
	wrong({ topP: 1.5 }, /from 0 to 1/);
	wrong({ stop: [1] }, /stop/);
	wrong({ stopTokens: [-1] }, /stopTokens/);
	assert.throws(
		() => model.chat("hi" as unknown as []),
		hasCode("invalid_argument", /messages must be an array/),
	);
	assert.throws(
		() => model.chat([{ role: "user" } as unknown as { role: string; content: string }]),
		hasCode("invalid_argument", /message 0/),
	);
	assert.throws(() => model.chat([]), hasCode("invalid_argument", /at least one message/));
	assert.throws(() => model.generate([1.5]), hasCode("invalid_argument", /1.5 is not a token id/));
	const holes = new Array(3);
	assert.throws(() => model.generate(holes), hasCode("invalid_argument", /undefined is not a token id/));
	assert.throws(() => model.generate([1, undefined] as number[]), hasCode("invalid_argument", /undefined/));
	assert.throws(() => model.generate({ length: 2 ** 52 }), hasCode("invalid_argument", /undefined/));
	assert.throws(() => model.generate({ length: -1 }), hasCode("invalid_argument"));
	assert.throws(() => model.chat(holes), hasCode("invalid_argument", /message 0/));
	wrong({ stopTokens: holes }, /stopTokens/);
	wrong({ stop: holes }, /stop/);
	assert.throws(() => model.generate(undefined as unknown as string), hasCode("invalid_argument"));
});

test("a worker whose script cannot be loaded is an error of the network that names it", async () => {
	const worker = { postMessage() {}, terminate() {} } as unknown as WorkerLike;
	const host = workerHost(() => worker, "https://example.org/worker.js");
	const loading = loadModelIn({ hasFileSystem: false, host: () => host }, bytes, {});
	setImmediate(() => (worker.onerror as unknown as (event: unknown) => void)({}));
	await assert.rejects(loading, hasCode("network", /example\.org\/worker\.js.*connection/));
});

test("a worker that crashes fails every call, now and later", async () => {
	const { model, crash }: { model: Model; crash(message: string): void } = await workerModel();
	const stream = model.generate("abc", { maxTokens: 1_000_000 });
	crash("boom");
	await assert.rejects(async () => await stream, hasCode("internal", /boom/));
	await assert.rejects(model.tokenize("x"), hasCode("internal", /boom/));
});
