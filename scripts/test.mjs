// The whole test suite, or the named parts of it.
//
//   npm test                     everything
//   npm test -- node e2e         some of: check native wasm relaxed unit build node e2e
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { buildPackage } from "./build.mjs";
import { checkSources } from "./check.mjs";
import { fetchSmolLm2 } from "./fetch-smollm2.mjs";
import { findChromedriver, findChromium } from "./lib/browser.mjs";
import { cacheDir, inRoot, targetDir } from "./lib/paths.mjs";
import { fail, run, step } from "./lib/run.mjs";
import { VARIANTS, variantEnv } from "./lib/wasm-variants.mjs";
import { setup } from "./setup.mjs";

/** The compiled test files of a folder of tests. */
async function compileTests(folder) {
	const source = inRoot("tests", folder);
	const entries = readdirSync(source).filter((name) => name.endsWith(".test.ts"));
	const out = inRoot("node_modules", ".cache", "sterna-tests", folder);
	rmSync(out, { recursive: true, force: true });
	mkdirSync(out, { recursive: true });
	const { bundleTests } = await import("./lib/bundle.mjs");
	await bundleTests(
		entries.map((name) => join(source, name)),
		out,
	);
	return entries.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
}

async function nodeTest(folder, { options = [], env = {} } = {}) {
	// Runs only the tests that match, for trying one: STERNA_TEST=pattern npm test -- e2e
	const only = process.env.STERNA_TEST ? [`--test-name-pattern=${process.env.STERNA_TEST}`] : [];
	const files = await compileTests(folder);
	run("node", ["--test", "--enable-source-maps", "--test-reporter=spec", ...only, ...options, ...files], {
		env: { STERNA_ROOT: inRoot(), CHROME: findChromium(), ...env },
	});
}

/** The path of the Llama-3 tokenizer, which may not be committed. */
function fetchLlama3Tokenizer() {
	run("node", [inRoot("scripts", "fetch-llama3-tokenizer.mjs"), cacheDir]);
	return join(cacheDir, "llama3-tokenizer.json");
}

function wasmPackTest(selection = [], env = {}) {
	run(
		"wasm-pack",
		[
			...["test", "--mode", "no-install", "--headless", "--chrome"],
			...["--chromedriver", findChromedriver(), ".", "--locked", ...selection],
		],
		// A software GPU needs minutes for what it is asked here.
		{ env: { WASM_BINDGEN_TEST_TIMEOUT: "900", ...env } },
	);
}

/** The browser's configuration with one more argument. */
function webdriverWith(argument) {
	const config = JSON.parse(readFileSync(inRoot("webdriver.json"), "utf8"));
	config["goog:chromeOptions"].args.push(argument);
	const path = join(inRoot("node_modules", ".cache"), "sterna-webdriver.json");
	mkdirSync(dirname(path), { recursive: true });
	writeFileSync(path, JSON.stringify(config));
	return path;
}

const parts = {
	check: () => checkSources(),
	native: () => {
		step("Native tests");
		run("cargo", ["test", "--locked"], { env: { STERNA_LLAMA3_TOKENIZER: fetchLlama3Tokenizer() } });
	},
	wasm: () => {
		step("Crate tests in Chromium");
		wasmPackTest();
	},
	relaxed: () => {
		step("Kernels with relaxed SIMD in Chromium");
		const env = variantEnv(VARIANTS.relaxed, targetDir);
		wasmPackTest(["--test", "kernels", "--test", "reference"], env);
		step("Kernels with relaxed SIMD as on a processor without AVX-VNNI");
		wasmPackTest(["--test", "kernels"], {
			...env,
			WASM_BINDGEN_TEST_WEBDRIVER_JSON: webdriverWith("--js-flags=--no-enable-avx-vnni"),
		});
	},
	unit: () => {
		step("Package tests over a stand-in for the engine");
		return nodeTest("unit");
	},
	build: () => buildPackage(),
	node: () => {
		step("Package tests in Node");
		return nodeTest("node");
	},
	e2e: async () => {
		step("Pages in Chromium");
		// One file at a time: the tests measure how soon a page answers, on machines with few cores.
		await nodeTest("e2e", {
			options: ["--test-concurrency=1"],
			env: { STERNA_SMOLLM2: await fetchSmolLm2(), STERNA_LLAMA3_TOKENIZER: fetchLlama3Tokenizer() },
		});
	},
};

const names = process.argv.slice(2);
const unknown = names.find((name) => !(name in parts));
if (unknown) fail(`there is no part '${unknown}'; the parts are: ${Object.keys(parts).join(" ")}`);

setup();
for (const [name, test] of Object.entries(parts)) {
	if (names.length === 0 || names.includes(name)) await test();
}
console.log("\nEvery part passed.");
