import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { SternaError } from "../../pkg-template/src/errors.js";
import { openPath } from "../../pkg-template/src/files/paths.js";
import { inspectModel } from "../../pkg-template/src/inspect.js";
import { loadModelIn } from "../../pkg-template/src/load-model.js";
import { localHost } from "../../pkg-template/src/local-host.js";
import type { Platform } from "../../pkg-template/src/platform.js";
import type { LoadOptions, LoadProgress, ModelSource } from "../../pkg-template/src/types.js";
import { fakeWasm } from "../support/fake-wasm.js";
import { startServer, type TestServer } from "../support/server.js";

const gguf = (size: number) => {
	const bytes = new Uint8Array(size).fill(120);
	bytes.set(new TextEncoder().encode("GGUF"));
	return bytes;
};

let server: TestServer;
let fake: ReturnType<typeof fakeWasm>;

before(async () => {
	server = await startServer();
});
after(() => server.close());
beforeEach(() => {
	fake = fakeWasm();
	server.routes.clear();
	server.requests.length = 0;
});

const platform = (): Platform => ({ ...fake.platform, openPath });

const load = (source: ModelSource, options: LoadOptions = {}) =>
	loadModelIn({ hasFileSystem: true, host: () => localHost(platform()) }, source, options);

const names = () => fake.log.files.map((file) => file.name);

const fails = async (promise: Promise<unknown>, code: string, message: RegExp) =>
	assert.rejects(promise, (error: unknown) => {
		assert.ok(error instanceof SternaError, String(error));
		assert.equal(error.code, code);
		assert.match(error.message, message);
		return true;
	});

test("a GGUF file is streamed, with its size, and progress is reported", async () => {
	server.routes.set("/m.gguf", { body: gguf(3_000_000) });
	const progress: LoadProgress[] = [];
	const model = await load(`${server.origin}/m.gguf`, { onProgress: (step) => progress.push(step) });
	assert.deepEqual(fake.log.files, [{ name: "m.gguf", size: 3_000_000, bytes: 3_000_000 }]);
	assert.deepEqual(
		[...new Set(progress.map((step) => step.phase))],
		["prepare", "download", "load", "ready"],
	);
	assert.deepEqual(progress.at(-1), {
		phase: "ready",
		loadedBytes: 3_000_000,
		totalBytes: 3_000_000,
		fraction: 1,
		cachedBytes: 0,
		cachedFraction: 0,
		isPaused: false,
	});
	const stats = await model.stats();
	assert.equal(stats.load.bytes, 3_000_000);
	assert.ok(stats.load.duration > 0);
});

test("a folder's side files come first, in order, and missing ones are left out", async () => {
	server.routes.set("/m/config.json", { body: "{}" });
	server.routes.set("/m/tokenizer.json", { body: "{}" });
	server.routes.set("/m/model.safetensors", { body: "weights" });
	await load(`${server.origin}/m/`);
	assert.deepEqual(names(), ["config.json", "tokenizer.json", "model.safetensors"]);
	assert.ok(server.requests.includes("GET /m/chat_template.jinja"));
});

test("a folder's address needs no slash, and a file's brings its folder's side files", async () => {
	server.routes.set("/m/config.json", { body: "{}" });
	server.routes.set("/m/model.safetensors", { body: "weights" });
	server.routes.set("/m/other.safetensors", { body: "weights" });
	await load(`${server.origin}/m`);
	assert.deepEqual(names(), ["config.json", "model.safetensors"]);
	fake = fakeWasm();
	await load(`${server.origin}/m/other.safetensors`);
	assert.deepEqual(names(), ["config.json", "other.safetensors"]);
});

test("pages that a server gives for missing files are not taken for files", async () => {
	const page = { body: "<p>Not found", headers: { "Content-Type": "text/html; charset=utf-8" } };
	server.routes.set("/m/config.json", { body: "{}" });
	server.routes.set("/m/tokenizer.json", page);
	server.routes.set("/m/chat_template.jinja", { body: "<!doctype html><html></html>" });
	server.routes.set("/m/model.safetensors", { body: "weights" });
	await load(`${server.origin}/m/`);
	assert.deepEqual(names(), ["config.json", "model.safetensors"]);
});

test("an index lists the shards, and the total counts all of them", async () => {
	const index = {
		weight_map: { a: "model-00001-of-00002.safetensors", b: "model-00002-of-00002.safetensors" },
	};
	server.routes.set("/m/config.json", { body: "{}" });
	server.routes.set("/m/model.safetensors.index.json", { body: JSON.stringify(index) });
	server.routes.set("/m/model-00001-of-00002.safetensors", { body: "one" });
	server.routes.set("/m/model-00002-of-00002.safetensors", { body: "two!" });
	const progress: LoadProgress[] = [];
	await load(`${server.origin}/m/`, { onProgress: (step) => progress.push(step) });
	assert.deepEqual(names().slice(-2), [
		"model-00001-of-00002.safetensors",
		"model-00002-of-00002.safetensors",
	]);
	assert.ok(server.requests.includes("HEAD /m/model-00002-of-00002.safetensors"));
	const total = 2 + JSON.stringify(index).length + 7;
	assert.equal(progress.at(-1)?.totalBytes, total);
	assert.equal(progress.find((step) => step.phase === "load")?.totalBytes, total);
	fake = fakeWasm();
	await load(`${server.origin}/m/model-00002-of-00002.safetensors`);
	assert.deepEqual(names(), [
		"config.json",
		"model-00001-of-00002.safetensors",
		"model-00002-of-00002.safetensors",
	]);
});

test("an address without a telling name is looked into, and downloaded once", async () => {
	server.routes.set("/download", { body: gguf(100) });
	await load(`${server.origin}/download?id=1`);
	assert.deepEqual(fake.log.files, [{ name: "model.gguf", size: 100, bytes: 100 }]);
	assert.deepEqual(server.requests, ["GET /download"]);
});

test("failures of the network are network errors that say what to do", async () => {
	await fails(load(`${server.origin}/none.gguf`), "network", /404.*check the address/);
	await fails(load(`${server.origin}/none/`), "network", /no config\.json/);
	await fails(
		load("http://127.0.0.1:9/m.gguf", { network: { retries: 1 } }),
		"network",
		/could not be fetched.*CORS/s,
	);
	server.routes.set("/cut.gguf", { body: gguf(100_000), cutAfter: 50_000 });
	const network = { retries: 0 };
	await fails(
		load(`${server.origin}/cut.gguf`, { network }),
		"network",
		/cut after \d+ of 100000 bytes.*try again/s,
	);
	server.routes.set("/cut2.gguf", { body: gguf(100_000), cutAfter: 50_000, chunked: true });
	await fails(load(`${server.origin}/cut2.gguf`, { network }), "network", /cut after/);
	server.routes.set("/page.gguf", { body: "<!DOCTYPE html><html>hi</html>" });
	await fails(load(`${server.origin}/page.gguf`), "network", /HTML page instead of a file/);
	server.routes.set("/owner/repo", { body: "<!doctype html><html>hi</html>" });
	await fails(load(`${server.origin}/owner/repo`), "network", /is a web page, not a model.*\.gguf/);
	const hub: typeof fetch = async (url) =>
		String(url).endsWith("/repo")
			? new Response("<!doctype html>", { headers: { "Content-Type": "text/html" } })
			: new Response("", { status: 404 });
	await fails(
		loadModelIn(
			{ hasFileSystem: true, host: () => localHost({ ...platform(), fetch: hub }) },
			"https://huggingface.co/owner/repo",
			{},
		),
		"network",
		/has no model owner\/repo/,
	);
	server.routes.set("/private.gguf", { status: 401 });
	await fails(load(`${server.origin}/private.gguf`), "network", /401.*private or gated/);
	server.routes.set("/broken.gguf", { status: 503 });
	await fails(load(`${server.origin}/broken.gguf`, { network }), "network", /503.*later/);
	server.routes.set("/down/config.json", { body: "{}" });
	server.routes.set("/down/tokenizer.json", { status: 500 });
	await fails(load(`${server.origin}/down/`, { network }), "network", /500/);
});

test("errors of the loader keep their code, and free it", async () => {
	await fails(load(new TextEncoder().encode("GGUF CORRUPT")), "corrupt_file", /corrupt/);
	assert.deepEqual(fake.log.freed, ["loader"]);
	await fails(load(new TextEncoder().encode("GGUF PANIC")), "internal", /Load the model again/);
	assert.deepEqual(fake.log.freed, ["loader"], "a module that trapped is left alone");
	await fails(load(new TextEncoder().encode("hello world")), "corrupt_file", /neither a GGUF nor/);
	await fails(load(new TextEncoder().encode("hel")), "corrupt_file", /3 bytes, too few/);
	await fails(load(new Uint8Array()), "corrupt_file", /0 bytes, too few/);
	await fails(
		load(new TextEncoder().encode("version https://git-lfs.github")),
		"unsupported_format",
		/git lfs pull/,
	);
});

test("a load stops at once when it is aborted, and ends its download", async () => {
	server.routes.set("/slow.gguf", { body: gguf(5_000_000), slow: { piece: 10_000, delay: 5 } });
	const controller = new AbortController();
	const start = performance.now();
	const loading = load(`${server.origin}/slow.gguf`, {
		signal: controller.signal,
		onProgress: ({ loadedBytes }) => loadedBytes > 20_000 && controller.abort(),
	});
	await fails(loading, "aborted", /aborted/);
	assert.ok(performance.now() - start < 1000);
	await fails(load(gguf(10), { signal: AbortSignal.abort("no more") }), "aborted", /no more/);
});

test("files that were dropped together", async () => {
	const file = (name: string, text = "{}") => new File([text], name);
	await load([file("model.safetensors"), file("tokenizer.json"), file("config.json"), file("notes.txt")]);
	assert.deepEqual(names(), ["config.json", "tokenizer.json", "model.safetensors"]);
	await fails(load([file("config.json"), file("b.txt")]), "invalid_argument", /no weights.*config\.json/);
	await fails(load([file("a.gguf"), file("b.gguf")]), "invalid_argument", /more than one model/);
	await fails(
		load([file("config.json"), file("m-00001-of-00003.safetensors")]),
		"invalid_argument",
		/also give m-00002-of-00003\.safetensors, m-00003/,
	);
	fake = fakeWasm();
	await load(new Blob([gguf(2_500_000)]));
	assert.deepEqual(fake.log.files, [{ name: "model.gguf", size: 2_500_000, bytes: 2_500_000 }]);
});

test("paths of files and folders", async () => {
	const folder = await mkdtemp(join(tmpdir(), "sterna-"));
	try {
		await writeFile(join(folder, "config.json"), "{}");
		await writeFile(join(folder, "model.safetensors"), "weights");
		await load(folder);
		assert.deepEqual(names(), ["config.json", "model.safetensors"]);
		fake = fakeWasm();
		await writeFile(join(folder, "other.safetensors"), "weights");
		await load(join(folder, "other.safetensors"));
		assert.deepEqual(names(), ["config.json", "other.safetensors"]);
		fake = fakeWasm();
		await writeFile(join(folder, "noname"), gguf(10));
		await load(join(folder, "noname"));
		assert.deepEqual(names(), ["model.gguf"]);
		await fails(load(join(folder, "none.gguf")), "invalid_argument", /no file or folder/);
		await fails(load("file://host/x.gguf"), "invalid_argument", /names no file of this machine/);
	} finally {
		await rm(folder, { recursive: true });
	}
});

test("what a progress callback throws is reported and does not end the load", async (context) => {
	const reported = context.mock.method(console, "error", () => undefined);
	const onProgress = () => {
		throw new Error("mine");
	};
	const model = await load(gguf(10), { onProgress });
	assert.equal((await model.logits([1, 2], { onProgress })).length, 2);
	assert.ok(reported.mock.callCount() >= 4);
});

test("unknown and wrong options are refused by name", async () => {
	const wrong = (options: object, message: RegExp) =>
		fails(load(gguf(10), options as LoadOptions), "invalid_argument", message);
	await wrong({ thread: 4 }, /no option 'thread'.*contextLength/);
	await wrong({ threads: 0 }, /'threads' must be "auto", or must be a whole number, at least 1/);
	await wrong({ contextLength: 0 }, /'contextLength' must be a whole number from 1/);
	await wrong({ kvCache: "q4" }, /'kvCache' must be "f32" or "f16" or "q16" or "q8"/);
	await wrong({ signal: {} }, /AbortSignal/);
	await wrong({ wasmUrl: "http://[" }, /'wasmUrl' is not an address/);
	await fails(load(gguf(10), { device: "webgpu" }), "unsupported_browser", /WebGPU/);
	await load(gguf(10), { contextLength: 8, kvCache: undefined });
	assert.deepEqual(fake.log.loaderOptions, { contextLength: 8, threads: 1 });
});

test("inspecting reads no more than the header, and ends the download", async () => {
	server.routes.set("/big.gguf", { body: gguf(50_000_000), slow: { piece: 100_000, delay: 1 } });
	const { report } = await inspectModel(
		platform(),
		{
			source: { kind: "url", urls: [`${server.origin}/big.gguf`] },
			options: {},
			access: { model: "", hub: { endpoint: "https://huggingface.co" } },
		},
		undefined,
	);
	assert.equal(report.architecture, "fake");
	assert.ok(fake.log.files[0]!.bytes < 5_000_000);
	await new Promise((resolve) => setTimeout(resolve, 50));
	assert.ok(server.aborted > 0);
});
