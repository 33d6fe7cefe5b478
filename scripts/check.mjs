// The fast loop: formatting, lints, types, documentation and the native unit tests. Builds no package.
//
//   npm run check                check everything
//   npm run check -- --fix       first apply formatters and safe lint fixes
//   npm run check -- --no-tests  leave the native unit tests out
import { pathToFileURL } from "node:url";
import { run, step } from "./lib/run.mjs";
import { setup } from "./setup.mjs";

const WASM = ["--target", "wasm32-unknown-unknown"];

function fix() {
	step("Formatting");
	run("cargo", ["fmt"]);
	run("biome", ["check", "--write", "."]);
}

/** Formatting, lints, types and documentation of both languages. */
export function checkSources() {
	step("Rust formatting");
	run("cargo", ["fmt", "--check"]);
	step("TypeScript and JavaScript formatting and lints");
	run("biome", ["ci", "."]);
	step("Types");
	run("tsc", ["--noEmit"]);
	step("Rust lints: native");
	run("cargo", ["clippy", "--locked", "--all-targets", "--", "-D", "warnings"]);
	step("Rust lints: wasm32");
	run("cargo", ["clippy", "--locked", ...WASM, "--all-targets", "--", "-D", "warnings"]);
	step("Rust documentation");
	run("cargo", ["doc", "--locked", "--no-deps", "--lib"], { env: { RUSTDOCFLAGS: "-D warnings" } });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	setup({ buildOnly: true });
	if (process.argv.includes("--fix")) fix();
	checkSources();
	if (!process.argv.includes("--no-tests")) {
		step("Native unit tests");
		run("cargo", ["test", "--locked", "--lib"]);
	}
}
