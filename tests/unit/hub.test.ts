// Models on the hub: which files are loaded, with which digests, and what is said when there are none.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { SternaError } from "../../pkg-template/src/errors.js";
import { parseListing, pickWeights } from "../../pkg-template/src/files/hub.js";
import { loadModelIn } from "../../pkg-template/src/load-model.js";
import { localHost } from "../../pkg-template/src/local-host.js";
import type { LoadOptions, ModelSource } from "../../pkg-template/src/types.js";
import { COMMIT, serveRepository } from "../support/fake-hub.js";
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

const load = (source: ModelSource, options: LoadOptions = {}) =>
	loadModelIn({ hasFileSystem: false, host: () => localHost(fake.platform) }, source, {
		hfEndpoint: server.origin,
		...options,
	});

const names = () => fake.log.files.map((file) => file.name);

const fails = (promise: Promise<unknown>, code: string, message: RegExp) =>
	assert.rejects(promise, (error: unknown) => {
		assert.ok(error instanceof SternaError, String(error));
		assert.equal(error.code, code);
		assert.match(error.message, message);
		return true;
	});

test("a ternary GGUF file is preferred, then safetensors, then other GGUF files", () => {
	const pick = (...paths: string[]) => pickWeights(paths.map((path) => ({ path })));
	assert.equal(pick("README.md", "m-Q8_0.gguf", "m-TQ2_0.gguf", "m-TQ1_0.gguf"), "m-TQ2_0.gguf");
	assert.equal(pick("ggml-model-i2_s.gguf", "config.json", "model.safetensors"), "ggml-model-i2_s.gguf");
	assert.equal(pick("m-f16.gguf", "config.json", "model.safetensors"), "model.safetensors");
	assert.equal(pick("m-f16.gguf", "m-Q4_K_M.gguf", "mmproj-f16.gguf"), "m-Q4_K_M.gguf");
	assert.equal(
		pick("config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json"),
		"model.safetensors.index.json",
	);
	assert.equal(pick("config.json", "weights.safetensors"), "weights.safetensors");
	assert.equal(pick("config.json", "pytorch_model.bin"), undefined);
});

test("a repository's files are loaded at its commit, without asking for any that is not there", async () => {
	const files = {
		"README.md": "about",
		"config.json": "{}",
		"tokenizer.json": "{}",
		"model.safetensors": "weights",
		"onnx/model.onnx": "other",
	};
	serveRepository(server, "owner/repo", { files, large: ["model.safetensors"] });
	await load("hf:owner/repo");
	assert.deepEqual(names(), ["config.json", "tokenizer.json", "model.safetensors"]);
	const at = `/owner/repo/resolve/${COMMIT}`;
	assert.deepEqual(server.requests.sort(), [
		"GET /api/models/owner/repo/revision/main",
		`GET ${at}/config.json`,
		`GET ${at}/model.safetensors`,
		`GET ${at}/tokenizer.json`,
	]);
	assert.deepEqual(
		fake.log.files.map(({ size, bytes }) => size === bytes),
		[true, true, true],
	);
});

test("sharded safetensors, split GGUF files, folders and named files", async () => {
	const index = {
		weight_map: { a: "model-00001-of-00002.safetensors", b: "model-00002-of-00002.safetensors" },
	};
	serveRepository(server, "owner/sharded", {
		files: {
			"config.json": "{}",
			"model-00001-of-00002.safetensors": "one",
			"model-00002-of-00002.safetensors": "two",
			"model.safetensors.index.json": JSON.stringify(index),
		},
	});
	await load("hf:owner/sharded");
	assert.deepEqual(names(), [
		"config.json",
		"model.safetensors.index.json",
		"model-00001-of-00002.safetensors",
		"model-00002-of-00002.safetensors",
	]);
	const gguf = "GGUF and so on, long enough to be looked at";
	const files = {
		"config.json": "{}",
		"i2_s/m-00001-of-00002.gguf": gguf,
		"i2_s/m-00002-of-00002.gguf": gguf,
		"f16/m.gguf": gguf,
	};
	for (const [source, wanted] of [
		["hf:owner/ggufs", ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]],
		["hf:owner/ggufs/i2_s/m-00002-of-00002.gguf", ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]],
		["hf:owner/ggufs/f16/m.gguf", ["m.gguf"]],
		["hf:owner/ggufs/f16", ["m.gguf"]],
		[`${server.origin}/owner/ggufs/blob/main/f16/m.gguf`, ["m.gguf"]],
		[`${server.origin}/owner/ggufs/tree/main`, ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]],
	] as const) {
		serveRepository(server, "owner/ggufs", { files });
		fake = fakeWasm();
		await load(source);
		assert.deepEqual(names(), wanted, source);
	}
	await fails(
		load("hf:owner/ggufs/q8/m.gguf"),
		"invalid_argument",
		/q8\/m\.gguf is not a file.*f16\/m\.gguf/,
	);
});

test("digests of the listing are checked", async () => {
	const files = { "m-i2_s.gguf": "GGUF and so on, long enough to be looked at" };
	const wrongDigests = { "m-i2_s.gguf": "0".repeat(64) };
	serveRepository(server, "owner/repo", { files, large: ["m-i2_s.gguf"], wrongDigests });
	await fails(load("hf:owner/repo"), "integrity_mismatch", /not the file that was expected/);
	serveRepository(server, "owner/repo", { files, large: ["m-i2_s.gguf"] });
	await load("hf:owner/repo");
});

test("private models need a token, and other sites never see it", async () => {
	const files = { "m-i2_s.gguf": "GGUF and so on, long enough to be looked at" };
	serveRepository(server, "owner/private", { files, token: "secret" });
	await fails(load("hf:owner/private"), "network", /private or gated.*hfToken/);
	await fails(
		load("hf:owner/private", { hfToken: "wrong" }),
		"network",
		/token of 'hfToken' may not read it/,
	);
	await load("hf:owner/private", { hfToken: "secret" });
	const other = await startServer();
	const seen: (string | undefined)[] = [];
	other.routes.set("/m.gguf", ({ headers }) => {
		seen.push(headers.authorization);
		return { body: files["m-i2_s.gguf"] };
	});
	await load(`${other.origin}/m.gguf`, { hfToken: "secret" });
	await other.close();
	assert.deepEqual(seen, [undefined]);
});

test("what is not there, or is no model, is told", async () => {
	await fails(load("hf:owner/none"), "network", /no model owner\/none at the revision 'main'/);
	serveRepository(server, "owner/other", { files: { "pytorch_model.bin": "x", "config.json": "{}" } });
	await fails(load("hf:owner/other"), "unsupported_format", /no model that Sterna can load in owner\/other/);
	server.routes.set("/api/models/owner/odd/revision/main", { body: "[]" });
	await fails(load("hf:owner/odd"), "corrupt_file", /did not give the list/);
	assert.throws(() => parseListing("{", "url"), SternaError);
	assert.deepEqual(
		parseListing('{"sha":"1","siblings":[null,{},{"rfilename":"a","size":-1.5,"lfs":{"sha256":7}}]}', "u"),
		{
			commit: "1",
			files: [{ path: "a", size: undefined, sha256: undefined }],
		},
	);
});

test("mirrors are tried in order, for files and for folders", async () => {
	const other = await startServer();
	const body = "GGUF and so on, long enough to be looked at";
	other.routes.set("/b/m.gguf", { body });
	await load([`${server.origin}/a/m.gguf`, `${other.origin}/b/m.gguf`]);
	assert.deepEqual(names(), ["m.gguf"]);
	fake = fakeWasm();
	other.routes.set("/b/config.json", { body: "{}" });
	other.routes.set("/b/model.safetensors", { body: "weights" });
	await load([`${server.origin}/a/`, `${other.origin}/b/`]);
	assert.deepEqual(names(), ["config.json", "model.safetensors"]);
	await other.close();
});

test("a list of addresses of different files is one model", async () => {
	server.routes.set("/x/config.json", { body: "{}" });
	server.routes.set("/y/model.safetensors", { body: "weights" });
	await load([`${server.origin}/y/model.safetensors`, `${server.origin}/x/config.json`]);
	assert.deepEqual(names(), ["config.json", "model.safetensors"]);
	assert.deepEqual(server.requests, ["GET /x/config.json", "GET /y/model.safetensors"]);
});
