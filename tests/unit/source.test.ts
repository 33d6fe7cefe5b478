import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidArgumentError } from "../../pkg-template/src/errors.js";
import { shardNames } from "../../pkg-template/src/files/checkpoint.js";
import { sniff } from "../../pkg-template/src/files/sniff.js";
import { describeSource, type SourceSpec } from "../../pkg-template/src/files/source.js";
import type { ModelSource } from "../../pkg-template/src/types.js";

const describe = (source: ModelSource, hasFileSystem = false) =>
	describeSource(source, { hasFileSystem, endpoint: "https://hub.example" }) as SourceSpec;

const url = (source: ModelSource) => {
	const spec = describe(source);
	return spec.kind === "url" ? spec.urls[0] : spec.kind;
};

test("hub references, and addresses of the hub, name a model, a file and a revision", () => {
	const at = (text: string) => describe(text) as Extract<SourceSpec, { kind: "hub" }>;
	const repo = "owner/repo";
	assert.deepEqual(at("hf:owner/repo"), { kind: "hub", repo, revision: "main" });
	assert.deepEqual(at("hf:owner/repo/"), { kind: "hub", repo, revision: "main" });
	const file = "a/model.gguf";
	assert.deepEqual(at("hf:owner/repo/a/model.gguf"), { kind: "hub", repo, file, revision: "main" });
	assert.deepEqual(at("hf:owner/repo/a/model.gguf@v1.0"), { kind: "hub", repo, file, revision: "v1.0" });
	assert.deepEqual(at("hf:owner/repo@refs/pr/1"), { kind: "hub", repo, revision: "refs/pr/1" });
	for (const wrong of ["hf:", "hf:owner", "hf:owner/", "hf:/repo"]) {
		assert.throws(() => at(wrong), InvalidArgumentError, wrong);
	}
	assert.deepEqual(at("https://huggingface.co/owner/repo"), { kind: "hub", repo, revision: "main" });
	assert.deepEqual(at("https://hub.example/owner/repo/blob/v2/a/model.gguf"), {
		kind: "hub",
		repo,
		file,
		revision: "v2",
	});
	assert.deepEqual(at("https://huggingface.co/owner/repo/resolve/main/a/model.gguf?download=true"), {
		kind: "hub",
		repo,
		file,
		revision: "main",
	});
	for (const other of [
		"https://huggingface.co/datasets/owner/repo",
		"https://huggingface.co/owner/repo/resolve/main/m.gguf?signature=x",
		"https://example.org/owner/repo",
	]) {
		assert.equal(url(other), other);
	}
});

test("several addresses are mirrors of one place, or the files of a model", () => {
	const mirrors = ["https://a.example/x/m.gguf", "https://b.example/m.gguf"];
	assert.deepEqual(describe(mirrors), { kind: "url", urls: mirrors });
	const folders = ["https://a.example/x/", "https://b.example/"];
	assert.deepEqual(describe(folders), { kind: "url", urls: folders });
	const parts = ["https://a.example/config.json", "https://a.example/model.safetensors"];
	assert.deepEqual(describe(parts), { kind: "parts", urls: parts });
	for (const wrong of [
		["https://a.example/config.json", "https://b.example/config.json", "https://a.example/model.gguf"],
		["https://a.example/m.gguf", "blob:https://a.example/1"],
		["https://a.example/", "https://a.example/model.gguf"],
	]) {
		assert.throws(() => describe(wrong), InvalidArgumentError, String(wrong));
	}
});

test("strings are URLs in browsers, and paths too in Node", () => {
	assert.equal(url("https://example.org/model.gguf"), "https://example.org/model.gguf");
	assert.equal(url(new URL("https://example.org/m/")), "https://example.org/m/");
	assert.deepEqual(describe("models/x", true), { kind: "path", path: "models/x" });
	assert.deepEqual(describe("C:\\m.gguf", true), { kind: "path", path: "C:\\m.gguf" });
	assert.deepEqual(describe("file:///m.gguf", true), { kind: "path", path: "file:///m.gguf" });
	assert.throws(() => url("models/x"), InvalidArgumentError);
	assert.throws(() => url(""), InvalidArgumentError);
});

test("files, blobs and bytes are described, anything else is refused", () => {
	assert.equal(describe(new Uint8Array(1)).kind, "bytes");
	assert.equal(describe(new ArrayBuffer(1)).kind, "bytes");
	assert.equal(describe(new Blob(["x"])).kind, "files");
	for (const wrong of [null, undefined, 3, {}, [], [new Blob(["x"])]]) {
		assert.throws(() => describe(wrong as unknown as ModelSource), InvalidArgumentError);
	}
});

test("shard names are counted out", () => {
	assert.deepEqual(shardNames("model-00002-of-00003.safetensors"), [
		"model-00001-of-00003.safetensors",
		"model-00002-of-00003.safetensors",
		"model-00003-of-00003.safetensors",
	]);
	assert.deepEqual(shardNames("m-00001-of-00002.gguf"), ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]);
	assert.equal(shardNames("model.safetensors"), undefined);
});

test("first bytes tell what a file is", () => {
	const bytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
	assert.equal(sniff(bytes("GGUF\x03")), "gguf");
	assert.equal(sniff(bytes('\x40\0\0\0\0\0\0\0{"a":1')), "safetensors");
	assert.equal(sniff(bytes("\n <!DOCTYPE html><html>")), "html");
	assert.equal(sniff(bytes("version https://git-lfs.github.com/spec/v1")), "git-lfs");
	assert.equal(sniff(bytes("anything")), "unknown");
	assert.equal(sniff(bytes("")), "unknown");
});
