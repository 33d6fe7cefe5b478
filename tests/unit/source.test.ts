import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidArgumentError } from "../../pkg-template/src/errors.js";
import { shardNames } from "../../pkg-template/src/files/checkpoint.js";
import { sniff } from "../../pkg-template/src/files/sniff.js";
import { describeSource } from "../../pkg-template/src/files/source.js";
import type { ModelSource } from "../../pkg-template/src/types.js";

const url = (source: ModelSource, isNode = false) => {
	const spec = describeSource(source, isNode);
	return spec.kind === "url" ? spec.url : spec.kind;
};

test("hub references become addresses", () => {
	const base = "https://huggingface.co/owner/repo/resolve";
	assert.equal(url("hf:owner/repo"), `${base}/main/`);
	assert.equal(url("hf:owner/repo/a/model.gguf"), `${base}/main/a/model.gguf`);
	assert.equal(url("hf:owner/repo/model.gguf@v1.0"), `${base}/v1.0/model.gguf`);
	assert.equal(url("hf:owner/repo@refs/pr/1"), `${base}/refs%2Fpr%2F1/`);
	for (const wrong of ["hf:", "hf:owner", "hf:owner/", "hf:/repo"]) {
		assert.throws(() => url(wrong), InvalidArgumentError, wrong);
	}
});

test("strings are URLs in browsers, and paths too in Node", () => {
	assert.equal(url("https://example.org/model.gguf"), "https://example.org/model.gguf");
	assert.equal(url(new URL("https://example.org/m/")), "https://example.org/m/");
	assert.deepEqual(describeSource("models/x", true), { kind: "path", path: "models/x" });
	assert.deepEqual(describeSource("C:\\m.gguf", true), { kind: "path", path: "C:\\m.gguf" });
	assert.deepEqual(describeSource("file:///m.gguf", true), { kind: "path", path: "file:///m.gguf" });
	assert.throws(() => url("models/x"), InvalidArgumentError);
	assert.throws(() => url(""), InvalidArgumentError);
});

test("files, blobs and bytes are described, anything else is refused", () => {
	assert.equal(describeSource(new Uint8Array(1), false).kind, "bytes");
	assert.equal(describeSource(new ArrayBuffer(1), false).kind, "bytes");
	assert.equal(describeSource(new Blob(["x"]), false).kind, "files");
	for (const wrong of [null, undefined, 3, {}, [], [new Blob(["x"])]]) {
		assert.throws(() => describeSource(wrong as unknown as ModelSource, false), InvalidArgumentError);
	}
});

test("shard names are counted out", () => {
	assert.deepEqual(shardNames("model-00002-of-00003.safetensors"), [
		"model-00001-of-00003.safetensors",
		"model-00002-of-00003.safetensors",
		"model-00003-of-00003.safetensors",
	]);
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
