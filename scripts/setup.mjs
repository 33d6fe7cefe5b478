// Provides what a build or a test run needs and this machine lacks. Each step first looks whether its
// work is already done, so that running it again takes about a second.
//
//   node scripts/setup.mjs            everything
//   node scripts/setup.mjs --build    only what `npm run build` needs (no browser, no test runner)
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { aptInstall } from "./lib/apt.mjs";
import { findChromedriver, findChromium } from "./lib/browser.mjs";
import { inRoot, toolsDir } from "./lib/paths.mjs";
import { capture, fail, run, step, tryRun, which } from "./lib/run.mjs";

const WASM_PACK_VERSION = "0.15.1";

/** The Rust toolchain of rust-toolchain.toml, with its components and the wasm target. */
function setupRust() {
	if (!which("cargo"))
		fail("Rust is missing: install it with rustup (https://rustup.rs) and run this again.");
	const toolchain = readFileSync(inRoot("rust-toolchain.toml"), "utf8");
	const channel = /channel = "(.+)"/.exec(toolchain)[1];
	const sysroot = capture("rustc", ["--print", "sysroot"])?.trim();
	const library = `${sysroot}/lib/rustlib`;
	const hasTarget = sysroot && existsSync(`${library}/wasm32-unknown-unknown`);
	const isComplete =
		hasTarget &&
		existsSync(`${library}/src/rust/library/std`) &&
		capture("rustc", ["--version"])?.includes(channel) &&
		capture("cargo", ["fmt", "--version"]) &&
		capture("cargo", ["clippy", "--version"]);
	if (isComplete) return;
	if (!which("rustup")) {
		fail(
			`Rust ${channel} with wasm32-unknown-unknown, rust-src, rustfmt and clippy is needed; rustup would install it.`,
		);
	}
	step(`Rust ${channel}`);
	const list = (key) =>
		[...new RegExp(`${key} = \\[(.*)\\]`).exec(toolchain)[1].matchAll(/"(.+?)"/g)].map((m) => m[1]);
	run("rustup", [
		...["toolchain", "install", channel, "--profile", "minimal"],
		...list("components").flatMap((name) => ["--component", name]),
		...list("targets").flatMap((name) => ["--target", name]),
	]);
}

/** node_modules exactly as package-lock.json says. */
function setupNodeModules() {
	const digest = createHash("sha256")
		.update(readFileSync(inRoot("package-lock.json")))
		.digest("hex");
	const stamp = inRoot("node_modules", ".installed-lock");
	if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
	step("npm packages");
	run("npm", ["ci", "--no-audit", "--no-fund"]);
	writeFileSync(stamp, digest);
}

/** A command-line tool from a crate, in the cache, at exactly the given version. */
function setupCargoTool(crate, program, version) {
	const installed = which(program) ? capture(program, ["--version"]) : undefined;
	if (installed?.split(/\s+/).includes(version)) return;
	step(`${crate} ${version}`);
	const install = ["install", "--root", toolsDir, "--version", `=${version}`, crate];
	// A crate's lock file may name a version of a dependency that a company's registry mirror lacks.
	if (!tryRun("cargo", [...install, "--locked"])) run("cargo", install);
}

/** The version of a crate in Cargo.lock: a tool that must match the crate takes its version from here. */
function lockedVersion(crate) {
	const lock = readFileSync(inRoot("Cargo.lock"), "utf8");
	return new RegExp(`name = "${crate}"\\nversion = "(.+)"`).exec(lock)[1];
}

/** Chromium and its driver, from Debian. */
function setupBrowser() {
	if (findChromium() && findChromedriver()) return;
	step("Chromium");
	aptInstall(["chromium", "chromium-driver"], "Chromium and its WebDriver are missing");
}

/**
 * A Vulkan driver that needs no GPU, for the native tests of the GPU backend: they skip themselves where there is
 * none at all.
 */
function setupVulkan() {
	const hasDriver = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"].some((folder) => existsSync(folder));
	if (process.platform !== "linux" || hasDriver || !which("apt-get")) return;
	step("Vulkan in software");
	aptInstall(["libvulkan1", "mesa-vulkan-drivers"], "A Vulkan driver is missing");
}

/** Provides everything, or only what a build needs. */
export function setup({ buildOnly = false } = {}) {
	setupRust();
	setupNodeModules();
	setupCargoTool("wasm-bindgen-cli", "wasm-bindgen", lockedVersion("wasm-bindgen"));
	if (buildOnly) return;
	setupCargoTool("wasm-pack", "wasm-pack", WASM_PACK_VERSION);
	setupBrowser();
	setupVulkan();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	setup({ buildOnly: process.argv.includes("--build") });
	console.log("Everything that a build and the tests need is here.");
}
