// Measures the package in headless Chromium: kernels, decoding, prefill and loading, beside the machine's read
// bandwidth and beside wllama on the same weights. benches/README.md says what is measured and how.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { buildPackage } from "./build.mjs";
import { inRoot } from "./lib/paths.mjs";
import { fail } from "./lib/run.mjs";
import { setup } from "./setup.mjs";

const USAGE = `usage: npm run bench -- [options]

  --quick           models of 4 layers with a small vocabulary, 3 rounds: about two minutes
  --threads N       threads of both engines (1)
  --device webgpu   measures WebGPU, beside the processor: of a GPU where there is one, else played by the processor
  --model FILE      measures this model in place of the synthetic ones
  --compare LIST    more ways of running our package: one-thread, strict (no relaxed SIMD), no-vnni,
                    webgpu, software-gpu (WebGPU played by the processor)
  --rounds N, --prompt N, --tokens N   rounds; tokens of prefill (48) and of decoding (16)
  --options JSON    options of loadModel, as in --options '{"kvCache":"f32"}'
  --busy N          keeps N threads computing beside
  --no-peer         leaves wllama out
  --no-kernels      leaves the kernels out
  --json FILE       writes the whole document
  --markdown        prints tables as Markdown
  --from FILE       prints the tables of an earlier run's document, measures nothing`;

function parseOptions() {
	try {
		return parseArgs({
			allowNegative: true,
			options: {
				quick: { type: "boolean", default: false },
				threads: { type: "string", default: "1" },
				device: { type: "string", default: "wasm" },
				model: { type: "string" },
				compare: { type: "string", default: "" },
				rounds: { type: "string" },
				prompt: { type: "string", default: "48" },
				tokens: { type: "string", default: "16" },
				options: { type: "string", default: "{}" },
				busy: { type: "string", default: "0" },
				peer: { type: "boolean", default: true },
				kernels: { type: "boolean", default: true },
				json: { type: "string" },
				markdown: { type: "boolean", default: false },
				from: { type: "string" },
				help: { type: "boolean", default: false },
			},
		}).values;
	} catch (error) {
		return fail(`${error.message}\n\n${USAGE}`);
	}
}

function whole(name, text, least = 1) {
	const value = Number(text);
	if (!Number.isInteger(value) || value < least) fail(`--${name} must be a whole number, at least ${least}.`);
	return value;
}

function parseJson(what, text) {
	try {
		return JSON.parse(text);
	} catch (error) {
		return fail(`${what} is not JSON: ${error.message}`);
	}
}

function makePlan(options, known) {
	const comparisons = options.compare.split(",").filter(Boolean);
	const unknown = comparisons.find((name) => !known.includes(name));
	if (unknown) fail(`--compare takes some of ${known.join(", ")}; '${unknown}' is not one.`);
	if (!["wasm", "webgpu"].includes(options.device)) fail('--device is "wasm" or "webgpu".');
	return {
		quick: options.quick,
		device: options.device,
		model: options.model,
		rounds: whole("rounds", options.rounds ?? (options.quick ? 3 : 5)),
		prompt: whole("prompt", options.prompt),
		tokens: whole("tokens", options.tokens),
		comparisons,
		loadOptions: {
			...parseJson("--options", options.options),
			threads: whole("threads", options.threads),
		},
		peer: options.peer,
		// A user's model says nothing about kernels, and the kernels are the processor's.
		kernels: options.kernels && !options.model && options.device === "wasm",
		busy: whole("busy", options.busy, 0),
	};
}

async function measure(options) {
	setup();
	if (!existsSync(inRoot("pkg", "index.js"))) await buildPackage();
	const { COMPARISONS } = await import("../benches/lib/engines.mjs");
	const { runBenchmark } = await import("../benches/lib/run.mjs");
	return runBenchmark(makePlan(options, Object.keys(COMPARISONS)));
}

const options = parseOptions();
if (options.help) {
	console.log(USAGE);
	process.exit();
}
const result = options.from
	? parseJson(options.from, readFileSync(options.from, "utf8"))
	: await measure(options);
const { asMarkdown, asText } = await import("../benches/lib/report.mjs");
console.log(options.markdown ? asMarkdown(result) : asText(result));
if (options.json) writeFileSync(options.json, `${JSON.stringify(result, null, "\t")}\n`);
