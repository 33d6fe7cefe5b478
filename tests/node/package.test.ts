// The packed tarball in Node: what is in it, its types, its API and its command line.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { VARIANTS } from "../../scripts/lib/wasm-variants.mjs";
import { type App, installPacked } from "../support/packed.js";
import { bit7m, inRoot, readTensor } from "../support/repo.js";
import { startServer, type TestServer } from "../support/server.js";

let app: App;
before(async () => {
	app = await installPacked();
});
after(() => app.remove());

const MODEL = inRoot("models", "bit-7m");

/** Runs the installed command. */
function sterna(args: string[], input = "") {
	const { status, stdout, stderr } = spawnSync(join(app.folder, "node_modules", ".bin", "sterna"), args, {
		encoding: "utf8",
		input,
	});
	return { status, stdout, stderr };
}

/** The installed package's entry for Node. */
const library = async (): Promise<typeof import("../../pkg-template/src/node.js")> =>
	import(join(app.folder, "node_modules", "sterna", "node", "index.js"));

test("the tarball has what the package needs, and nothing else", () => {
	const manifest = JSON.parse(readFileSync(inRoot("pkg", "package.json"), "utf8"));
	const has = (path: string) =>
		assert.ok(app.files.includes(path.replace(/^\.\//, "")), `${path} is missing`);
	const { types, node, default: browser } = manifest.exports["."];
	for (const path of [types, node, browser, manifest.bin.sterna]) has(path);
	for (const path of ["worker.js", "thread.js", "node/thread.js"]) has(path);
	for (const path of ["README.md", "LICENSE-MIT", "LICENSE-APACHE"]) has(path);
	for (const { file } of Object.values(VARIANTS)) has(file);
	const expected =
		/^(types\/.*\.d\.ts|(node\/)?[\w-]+\.js(\.map)?|sterna(_relaxed)?(_threads)?_bg\.wasm|package\.json|README\.md|LICENSE-\w+)$/;
	assert.deepEqual(
		app.files.filter((path) => !expected.test(path)),
		[],
	);
	assert.equal(manifest.dependencies, undefined);
});

test("only the relaxed builds have relaxed-SIMD instructions, which Safari rejects", () => {
	const isStrict = ({ file }: { file: string }, { wasmOptFeatures: features } = VARIANTS.baseline) => {
		const args = ["--mvp-features", ...features, "--metrics", inRoot("pkg", file)];
		return spawnSync(inRoot("node_modules", ".bin", "wasm-opt"), args).status === 0;
	};
	assert.ok(isStrict(VARIANTS.baseline));
	assert.ok(!isStrict(VARIANTS.relaxed));
	assert.ok(isStrict(VARIANTS.threads, VARIANTS.threads));
	assert.ok(!isStrict(VARIANTS.relaxedThreads, VARIANTS.threads));
});

test("the types hold in a strict app, with both ways of resolving modules", async () => {
	const source = `
import { capabilities, loadModel, NetworkError, SternaError, type Delta, type GenerationResult, type Model } from "sterna";
export async function main(): Promise<string> {
	await using model: Model = await loadModel("hf:owner/repo", { contextLength: 64, onProgress: ({ fraction }) => fraction });
	const stream = model.chat([{ role: "user", content: "Hi" }], { temperature: 0, stop: ["x"], seed: 1 });
	for await (const delta of stream) { const d: Delta = delta; d.text.length; }
	const result: GenerationResult = await stream;
	const ids: Uint32Array = await model.tokenize("x");
	const rows: Float32Array[] = await model.logits(ids);
	try { await capabilities(); } catch (error) { if (error instanceof NetworkError) error.status; if (error instanceof SternaError) error.code === "network"; }
	// @ts-expect-error options that do not exist are errors
	await loadModel("x", { thread: 4 });
	// @ts-expect-error neither do these
	model.generate("x", { logprobs: true });
	return result.text + rows.length + result.timing.decodeTps;
}
`;
	await writeFile(join(app.folder, "app.mts"), source);
	for (const [module, resolution] of [
		["ESNext", "Bundler"],
		["NodeNext", "NodeNext"],
	] as const) {
		const options = ["--strict", "--noEmit", "--target", "ES2022", "--lib", "ES2022,DOM,ESNext.Disposable"];
		const { status, stdout } = spawnSync(
			inRoot("node_modules", ".bin", "tsc"),
			[...options, "--module", module, "--moduleResolution", resolution, "app.mts"],
			{ cwd: app.folder, encoding: "utf8" },
		);
		assert.equal(status, 0, stdout);
	}
});

test("the API in Node", async () => {
	const { loadModel, capabilities, version } = await library();
	assert.match(version, /^\d+\.\d+\.\d+$/);
	assert.equal((await capabilities()).supported, true);
	const model = await loadModel(MODEL, { kvCache: "f32" });
	for (const { messages, prompt, prompt_text, prompt_ids, greedy_ids, ...wanted } of bit7m.cases) {
		if (messages) assert.equal(await model.applyChatTemplate(messages), prompt_text);
		const options = { temperature: 0, maxTokens: greedy_ids.length };
		const result = messages ? await model.chat(messages, options) : await model.generate(prompt!, options);
		assert.equal(result.usage.promptTokens, prompt_ids.length);
		if (wanted.smallest_top2_margin >= 0.05) assert.equal(result.text, wanted.greedy_text);
	}
	const reference = bit7m.perplexity;
	const { losses, perplexity } = await model.perplexity(reference.text);
	assert.equal(losses.length, reference.ids.length - 1);
	// From the first int8 rounding tie on, losses differ by the rounding noise (see tests/embedded_model.rs).
	const differences = reference.nll_per_token.map((loss, i) => Math.abs(losses[i]! - loss));
	assert.ok(differences.slice(0, 5).every((difference) => difference <= 1e-3));
	const mean = differences.reduce((sum, difference) => sum + difference, 0) / differences.length;
	assert.ok(mean <= 0.05, `mean difference ${mean}`);
	assert.ok(Math.abs(perplexity / reference.perplexity - 1) < 0.01, String(perplexity));
	await assert.rejects(loadModel(MODEL, { worker: true }), { code: "invalid_argument" });
	for (const empty of ["", []]) {
		await assert.rejects(async () => await model.generate(empty), { code: "invalid_argument" });
	}
	await assert.rejects(async () => await model.generate(new Array(600).fill(5)), {
		code: "context_overflow",
	});
	await assert.rejects(model.logits([5000]), { code: "invalid_argument" });
	const same = { maxTokens: 20, temperature: 1, seed: 7 };
	const [once, twice] = [await model.generate("One day", same), await model.generate("One day", same)];
	assert.equal(once.text, twice.text);
	assert.ok(twice.usage.cachedTokens > 0, "the second prompt is in the cache");
	await model.dispose();
});

test("sterna --help, wrong usage and errors have their exit codes", () => {
	const help = sterna(["--help"]);
	assert.equal(help.status, 0);
	assert.match(help.stdout, /inspect[\s\S]*generate[\s\S]*chat[\s\S]*logits[\s\S]*perplexity[\s\S]*tokenize/);
	assert.match(help.stdout, /Exit codes/);
	assert.equal(sterna(["--version"]).status, 0);
	for (const wrong of [
		[],
		["nonsense"],
		["generate"],
		["logits", MODEL, "--ids", "x"],
		["inspect", MODEL, "--kv", "q4"],
	]) {
		const { status, stdout, stderr } = sterna(wrong);
		assert.equal(status, 2, wrong.join(" "));
		assert.equal(stdout, "");
		assert.notEqual(stderr, "");
	}
	const missing = sterna(["generate", "no-such-file.gguf", "-p", "x"]);
	assert.equal(missing.status, 1);
	assert.match(missing.stderr, /no file or folder 'no-such-file\.gguf'.*\[invalid_argument\]/);
	const gpu = sterna(["tokenize", MODEL, "x", "--device", "webgpu"]);
	assert.equal(gpu.status, 1);
	assert.match(gpu.stderr, /\[unsupported_browser\]/);
});

test("sterna logits: a model without tokenizer files, against the reference", async () => {
	const reference = inRoot("tests", "fixtures", "bitnet-a-relu2-logits.safetensors");
	const ids = [...readTensor(reference, "ids16").values];
	const wanted = readTensor(reference, "logits16_packed_f32");
	const folder = inRoot("tests", "fixtures", "bitnet-a-relu2-packed");
	const args = ["logits", folder, "--ids", ids.join(","), "--kv", "f32", "--device", "wasm", "--json"];
	const { status, stdout } = sterna(args);
	assert.equal(status, 0);
	const { logits } = JSON.parse(stdout) as { logits: number[][] };
	assert.deepEqual([logits.length, logits[0]?.length], wanted.shape);
	const flat = logits.flat();
	assert.ok(flat.every((value, i) => Math.abs(value - wanted.values[i]!) <= 1e-4));
	const model = await (await library()).loadModel(folder, { kvCache: "f32" });
	const rows = await model.logits(ids);
	assert.deepEqual(
		logits.map((row) => Float32Array.from(row)),
		rows,
		"the printed decimals are exact",
	);
	await model.dispose();
});

test("sterna generate, chat, tokenize and perplexity", async () => {
	const generated = sterna(["generate", MODEL, "-p", "Once upon a time,", "-t", "0", "-n", "8", "--json"]);
	const result = JSON.parse(generated.stdout);
	assert.equal(result.usage.completionTokens, 8);
	assert.equal(result.finishReason, "length");
	assert.match(generated.stderr, /^loading /);
	assert.equal(
		sterna(["generate", MODEL, "-t", "0", "-n", "8", "-q"], "Once upon a time,").stdout,
		`${result.text}\n`,
	);

	const chat = sterna(
		["chat", MODEL, "-t", "0", "-q"],
		"What is the capital of Japan?\n/clear\nWhat sound does a cow make?\n",
	);
	assert.equal(chat.status, 0);
	assert.equal(chat.stdout, "The capital of Japan is Tokyo.\nA cow moos.\n");
	assert.equal(chat.stderr, "");

	const { ids, tokens } = JSON.parse(sterna(["tokenize", MODEL, "Once upon a time,", "--json"]).stdout);
	assert.deepEqual(ids, [0, 479, 477, 261, 412, 16]);
	assert.equal(tokens.slice(1).join(""), "Once upon a time,");

	const file = join(app.folder, "text.txt");
	await writeFile(file, bit7m.perplexity.text);
	const perplexity = JSON.parse(sterna(["perplexity", MODEL, "--text-file", file, "--json"]).stdout);
	assert.equal(perplexity.tokens, bit7m.perplexity.ids.length - 1);
	assert.equal(sterna(["perplexity", MODEL, "--text-file", "none.txt"]).status, 1);
});

test("sterna inspect reads no more of a URL than the header", async () => {
	const server: TestServer = await startServer();
	try {
		const header = readFileSync(inRoot("tests", "fixtures", "gguf", "bitnet-a-relu2-i2_s.gguf"));
		server.routes.set("/m.gguf", { body: header, slow: { piece: 20_000, delay: 200 } });
		const child = spawn(join(app.folder, "node_modules", ".bin", "sterna"), [
			"inspect",
			`${server.origin}/m.gguf`,
			"--json",
		]);
		let output = "";
		child.stdout.setEncoding("utf8").on("data", (text) => {
			output += text;
		});
		const status = await new Promise((resolve) => child.on("exit", resolve));
		assert.equal(status, 0);
		const report = JSON.parse(output);
		assert.equal(report.format, "gguf");
		assert.equal(report.supported, true);
		assert.ok(report.memory.total > 0);
		assert.ok(server.aborted > 0, "the download was ended early");
	} finally {
		await server.close();
	}
});

test("Ctrl-C ends a generation with exit code 130", async () => {
	const child = spawn(join(app.folder, "node_modules", ".bin", "sterna"), [
		...["generate", MODEL, "-p", "Once upon a time,", "--ignore-eos", "-n", "500"],
	]);
	child.stdout.once("data", () => child.kill("SIGINT"));
	const status = await new Promise((resolve) => child.on("exit", resolve));
	assert.equal(status, 130);
});

test("npx sterna works in a clone", () => {
	const { status, stdout } = spawnSync("npx", ["--no-install", "sterna", "--version"], {
		cwd: inRoot(),
		encoding: "utf8",
	});
	assert.equal(status, 0);
	assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
});
