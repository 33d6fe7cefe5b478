// Loads a model in headless Chromium through the built package and measures what a visitor feels: load
// time, peak memory, prefill and decode speed.
//
//   node benches/decode.mjs MODEL.gguf [--tokens 32] [--prompt 48] [--rounds 3] [--kv f16] [--json FILE]
//
// Peak memory is the tab's: the wasm module's memory and the JavaScript heaps of page and worker, sampled
// while loading.
import { createReadStream, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, extname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { findChromium } from "../scripts/lib/browser.mjs";
import { inRoot } from "../scripts/lib/paths.mjs";

const { values: options, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		tokens: { type: "string", default: "32" },
		prompt: { type: "string", default: "48" },
		rounds: { type: "string", default: "3" },
		kv: { type: "string", default: "f16" },
		json: { type: "string" },
	},
});
if (positionals.length !== 1) {
	console.error(
		"usage: node benches/decode.mjs MODEL.gguf [--tokens N] [--prompt N] [--rounds N] [--kv f16|f32] [--json FILE]",
	);
	process.exit(2);
}
const modelPath = resolve(positionals[0]);

const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

/** Serves the package, the model and an empty page, cross-origin isolated. */
function listen() {
	const server = createServer((request, response) => {
		const { pathname } = new URL(request.url, "http://localhost");
		const headers = {
			"Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Embedder-Policy": "require-corp",
		};
		if (pathname === "/") {
			response.writeHead(200, { ...headers, "Content-Type": "text/html" });
			response.end("<!doctype html><title>bench</title>");
			return;
		}
		const path = pathname.startsWith("/model/") ? modelPath : join(inRoot("pkg"), pathname);
		const size = statSync(path, { throwIfNoEntry: false })?.size;
		if (size === undefined) {
			response.writeHead(404, headers);
			response.end();
			return;
		}
		const type = TYPES[extname(path)] ?? "application/octet-stream";
		response.writeHead(200, { ...headers, "Content-Type": type, "Content-Length": size });
		createReadStream(path, { highWaterMark: 1 << 20 }).pipe(response);
	});
	return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

/** What runs in the page. */
async function measure({ url, kvCache, tokens, prompt, rounds }) {
	const { loadModel } = await import("/index.js");
	const begin = performance.now();
	const model = await loadModel(url, { kvCache });
	const loadMs = performance.now() - begin;
	const { memory } = await model.stats();
	const runs = [];
	for (let round = 0; round < rounds; round++) {
		// Other ids each round: the cache must not help.
		const ids = Array.from({ length: prompt }, (_, i) => 40 + ((i * 7 + round * 13) % 200));
		const { timing, usage } = await model.generate(ids, {
			temperature: 0,
			maxTokens: tokens,
			ignoreEos: true,
		});
		runs.push({ ...timing, cachedTokens: usage.cachedTokens });
	}
	const after = await model.stats();
	await model.dispose();
	return { loadMs, memory, memoryAfter: after.memory, kernel: model.info.kernel, runs };
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const server = await listen();
const browser = await chromium.launch({ executablePath: findChromium(), args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);
const devtools = await browser.newBrowserCDPSession();

/** Resident bytes of all renderer processes, as the system counts them. */
async function rendererBytes() {
	const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
	const { readFileSync } = await import("node:fs");
	let sum = 0;
	for (const { type, id } of processInfo.filter(({ type }) => type === "renderer")) {
		try {
			const pages = Number(readFileSync(`/proc/${id}/statm`, "utf8").split(" ")[1]);
			sum += pages * 4096;
		} catch (error) {
			console.error(`cannot read the memory of ${type} ${id}: ${error.message}`);
		}
	}
	return sum;
}

const before = process.platform === "linux" ? await rendererBytes() : undefined;
let peak = before;
const sampler =
	before === undefined
		? undefined
		: setInterval(async () => {
				peak = Math.max(peak, await rendererBytes());
			}, 100);

const result = await page.evaluate(measure, {
	url: `/model/${basename(modelPath)}`,
	kvCache: options.kv,
	tokens: Number(options.tokens),
	prompt: Number(options.prompt),
	rounds: Number(options.rounds),
});
clearInterval(sampler);
await browser.close();
server.close();

const fileBytes = statSync(modelPath).size;
const summary = {
	model: basename(modelPath),
	fileBytes,
	kernel: result.kernel,
	loadSeconds: result.loadMs / 1000,
	loadMBps: fileBytes / 1e3 / result.loadMs,
	wasmBytesLoaded: result.memory.wasm,
	wasmOverFile: result.memory.wasm / fileBytes,
	peakTabBytes: peak === undefined ? undefined : peak - before,
	peakTabOverFile: peak === undefined ? undefined : (peak - before) / fileBytes,
	prefillTokensPerSecond: median(result.runs.map((run) => run.prefillTps)),
	decodeTokensPerSecond: median(result.runs.map((run) => run.decodeTps)),
	runs: result.runs,
};
console.table(
	Object.fromEntries(
		Object.entries(summary)
			.filter(([key]) => key !== "runs")
			.map(([key, value]) => [key, typeof value === "number" ? Number(value.toPrecision(4)) : value]),
	),
);
if (options.json) writeFileSync(options.json, `${JSON.stringify(summary, null, "\t")}\n`);
process.exit(0);
