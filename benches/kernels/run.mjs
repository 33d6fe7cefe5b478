// Ternary kernels against the memory they read: the SIMD128 build and the relaxed-SIMD build, call by call
// in turn, in headless Chromium or in Node.
//
//   node benches/kernels/run.mjs [--node] [--quick] [--case PATTERN] [--shape PATTERN] [--no-layer] [--no-vnni] [--json FILE]
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findChromium } from "../../scripts/lib/browser.mjs";
import { inRoot, targetDir } from "../../scripts/lib/paths.mjs";
import { run } from "../../scripts/lib/run.mjs";
import { VARIANTS, variantEnv } from "../../scripts/lib/wasm-variants.mjs";
import {
	belongs,
	CASES,
	instantiate,
	LAYER_CASES,
	measureCase,
	measureLayer,
	restShareOfToken,
	SHAPES,
} from "./measure.mjs";

const { values: options } = parseArgs({
	allowNegative: true,
	options: {
		node: { type: "boolean", default: false },
		quick: { type: "boolean", default: false },
		case: { type: "string", default: "" },
		shape: { type: "string", default: "" },
		layer: { type: "boolean", default: true },
		/** Chromium only: as on an x86 processor without AVX-VNNI. */
		vnni: { type: "boolean", default: true },
		json: { type: "string" },
	},
});

function build(variant) {
	const env = variantEnv(variant, join(targetDir, "kernel-bench"));
	run("cargo", ["build", "--release", "--target", "wasm32-unknown-unknown"], {
		cwd: inRoot("benches", "kernels"),
		env,
	});
	return join(env.CARGO_TARGET_DIR, "wasm32-unknown-unknown", "release", "sterna_bench_kernels.wasm");
}

const files = { simd128: build(VARIANTS.baseline), relaxed: build(VARIANTS.relaxed) };
const rounds = options.quick ? 60 : 400;
const wanted = (list, name, pattern) => list.filter((entry) => new RegExp(pattern).test(name(entry)));
const plan = wanted(SHAPES, ([name]) => name, options.shape).flatMap((shape) =>
	wanted(CASES, ({ name }) => name, options.case)
		.filter((test) => belongs(shape, test))
		.map((test) => ({ shape, test, rounds })),
);

async function inNode() {
	const engines = {};
	for (const [name, file] of Object.entries(files)) {
		const bytes = readFileSync(file);
		if (!WebAssembly.validate(bytes)) {
			console.error(`This Node does not run the ${name} build: left out.`);
			continue;
		}
		engines[name] = await instantiate(await WebAssembly.compile(bytes));
	}
	const results = plan.flatMap(({ shape, test }) => report(measureCase(engines, shape, test, rounds)));
	const measure = (test) => reportLayers(measureLayer(engines, test, rounds), results);
	return { results, layers: options.layer ? LAYER_CASES.flatMap(measure) : undefined };
}

/** Serves the benchmark page; isolation gives it a clock of 5 µs. */
function serve() {
	const pages = {
		"/": ["text/html", () => "<!doctype html><title>Kernels</title>"],
		"/measure.mjs": ["text/javascript", () => readFileSync(inRoot("benches", "kernels", "measure.mjs"))],
	};
	for (const [name, file] of Object.entries(files)) {
		pages[`/${name}.wasm`] = ["application/wasm", () => readFileSync(file)];
	}
	const server = createServer((request, response) => {
		const page = pages[request.url];
		response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
		response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
		if (!page) return response.writeHead(404).end();
		response.setHeader("Content-Type", page[0]);
		return response.end(page[1]());
	});
	return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

async function inChromium() {
	const { chromium } = await import("playwright-core");
	const server = await serve();
	const flags = options.vnni ? [] : ["--js-flags=--no-enable-avx-vnni"];
	const browser = await chromium.launch({ executablePath: findChromium(), args: ["--no-sandbox", ...flags] });
	try {
		const page = await browser.newPage();
		await page.goto(`http://127.0.0.1:${server.address().port}/`);
		await page.evaluate(async (names) => {
			const { instantiate, measureCase, measureLayer } = await import("/measure.mjs");
			const engines = {};
			for (const name of names) {
				engines[name] = await instantiate(await WebAssembly.compileStreaming(fetch(`/${name}.wasm`)));
			}
			globalThis.measure = ({ shape, test, rounds }) => measureCase(engines, shape, test, rounds);
			globalThis.measureLayer = ({ test, rounds }) => measureLayer(engines, test, rounds);
		}, Object.keys(files));
		const results = [];
		for (const entry of plan) {
			results.push(...report(await page.evaluate((entry) => globalThis.measure(entry), entry)));
		}
		if (!options.layer) return { results };
		const layers = [];
		for (const test of LAYER_CASES) {
			layers.push(
				...reportLayers(
					await page.evaluate((plan) => globalThis.measureLayer(plan), { test, rounds }),
					results,
				),
			);
		}
		return { results, layers };
	} finally {
		await browser.close();
		server.close();
	}
}

function report(rows) {
	for (const row of rows) {
		console.log(
			[
				`${row.shape} ${row.rows}×${row.cols}`.padEnd(22),
				row.case.padEnd(22),
				row.engine.padEnd(8),
				`${row.p25Ms.toFixed(3)} ms`.padStart(11),
				`${row.gbPerS.toFixed(2)} GB/s`.padStart(11),
				`read ${row.readGbPerS.toFixed(2)}`.padStart(11),
				`= ${row.ofRead.toFixed(2)}`.padStart(7),
				`${row.gmacPerS.toFixed(1)} GMAC/s`.padStart(14),
				row.peakGmacPerS ? `of ${row.peakGmacPerS.toFixed(1)}` : "",
			].join(" "),
		);
	}
	return rows;
}

function reportLayers(measured, results) {
	const rows = measured.map((row) => ({ ...row, restShareOfToken: restShareOfToken(row, results) }));
	for (const row of rows) {
		const { engine, what, context, kv, tokens, layerMs, productsMs, attentionMs, restShare } = row;
		console.log(
			[
				`layer, ${what}: ${tokens} after ${context} in ${kv}`.padEnd(45),
				engine.padEnd(8),
				`${layerMs.toFixed(3)} ms`.padStart(11),
				`products ${productsMs.toFixed(3)} ms`.padStart(20),
				`attention ${attentionMs.toFixed(3)} ms`.padStart(20),
				`no product ${(100 * restShare).toFixed(1)} %`.padStart(18),
				row.restShareOfToken ? `, of a token ${(100 * row.restShareOfToken).toFixed(1)} %` : "",
			].join(" "),
		);
	}
	return rows;
}

const measured = options.node ? await inNode() : await inChromium();
if (options.json) {
	const machine = { cpu: cpus()[0].model, cores: cpus().length, where: options.node ? "node" : "chromium" };
	writeFileSync(options.json, `${JSON.stringify({ machine, rounds, ...measured }, null, "\t")}\n`);
}
