// Builds the publishable npm package into pkg/: Rust → wasm → bindings → optimiser → bundles and types.
//
//   npm run build             the release package
//   npm run build -- --quick  no link-time optimisation and no wasm-opt: for trying a change (slow at run time)
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { inRoot, targetDir } from "./lib/paths.mjs";
import { fail, run, step } from "./lib/run.mjs";
import { VARIANTS, variantEnv } from "./lib/wasm-variants.mjs";
import { setup } from "./setup.mjs";

const pkg = inRoot("pkg");
const template = inRoot("pkg-template");
const QUICK_PROFILE = {
	CARGO_PROFILE_RELEASE_LTO: "off",
	CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16",
};

/** Builds one variant and its bindings. Returns the folder with both. */
function buildWasm(variant, quick) {
	step(`Rust → ${variant.file}`);
	const env = variantEnv(variant, targetDir);
	const args = ["--locked", "--release", "--lib", "--target", "wasm32-unknown-unknown"];
	run("cargo", ["build", ...args, ...variant.cargoArgs], {
		env: { ...env, ...(quick ? QUICK_PROFILE : {}) },
	});
	step("JavaScript bindings");
	const bindings = join(env.CARGO_TARGET_DIR, "sterna-web");
	rmSync(bindings, { recursive: true, force: true });
	run("wasm-bindgen", [
		...["--target", "web", "--omit-default-module-path", "--remove-producers-section"],
		...["--no-typescript", "--out-name", "sterna", "--out-dir", bindings],
		// After a trap the package puts a fresh instance in the place of the lost one.
		"--experimental-reset-state-function",
		join(env.CARGO_TARGET_DIR, "wasm32-unknown-unknown", "release", "sterna.wasm"),
	]);
	return bindings;
}

function optimiseWasm(variant, bindings, quick) {
	const source = join(bindings, "sterna_bg.wasm");
	const output = join(pkg, variant.file);
	if (quick) {
		cpSync(source, output);
		return;
	}
	step("wasm-opt");
	// What LLVM kept apart stays apart: some loops have registers enough only in functions of their own.
	const inlining = "--one-caller-inline-max-function-size=40";
	const passes = ["-O3", inlining, "--strip-debug", "--strip-target-features"];
	run("wasm-opt", [...passes, ...variant.wasmOptFeatures, source, "-o", output]);
}

/** Builds variants whose bindings are the same. Returns the bindings' script. */
function buildVariants(variants, quick) {
	const scripts = variants.map((variant) => {
		const bindings = buildWasm(variant, quick);
		optimiseWasm(variant, bindings, quick);
		return join(bindings, "sterna.js");
	});
	// Comments of the bindings number functions, which differ.
	const code = (script) => readFileSync(script, "utf8").replaceAll(/^\s*\/\/.*$/gm, "");
	const [first, ...others] = scripts.map(code);
	if (others.some((script) => script !== first)) {
		fail(`the bindings of the WebAssembly variants differ: compare ${scripts.join(" and ")}`);
	}
	return scripts[0];
}

async function bundle(aliases, version) {
	step("Bundles and types");
	const { bundlePackage } = await import("./lib/bundle.mjs");
	await bundlePackage(pkg, aliases, version);
	run("tsc", ["--project", join(template, "tsconfig.json")]);
}

function copyTemplate() {
	const manifest = JSON.parse(readFileSync(join(template, "package.json"), "utf8"));
	writeFileSync(join(pkg, "package.json"), `${JSON.stringify(manifest, null, "\t")}\n`);
	for (const file of ["README.md", "LICENSE-MIT", "LICENSE-APACHE"]) {
		const source = [join(template, file), inRoot(file)].find((path) => existsSync(path));
		if (source) cpSync(source, join(pkg, file));
	}
	return manifest.version;
}

/** Prints what a page downloads: the size of each script and of each wasm module, plain and compressed. */
function printSizes() {
	step("Sizes (bytes)");
	const row = (...cells) =>
		console.log(cells.map((cell, i) => (i ? String(cell).padStart(11) : cell.padEnd(24))).join(""));
	row("file", "raw", "gzip", "brotli");
	for (const name of readdirSync(pkg).filter((file) => /\.(js|wasm)$/.test(file))) {
		const bytes = readFileSync(join(pkg, name));
		row(name, bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes).length);
	}
}

/** Builds pkg/. */
export async function buildPackage({ quick = false } = {}) {
	rmSync(pkg, { recursive: true, force: true });
	mkdirSync(pkg, { recursive: true });
	const variants = Object.values(VARIANTS);
	const glue = buildVariants(
		variants.filter(({ isShared }) => !isShared),
		quick,
	);
	const sharedGlue = buildVariants(
		variants.filter(({ isShared }) => isShared),
		quick,
	);
	await bundle({ "sterna-wasm": glue, "sterna-wasm-threads": sharedGlue }, copyTemplate());
	printSizes();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	setup({ buildOnly: true });
	await buildPackage({ quick: process.argv.includes("--quick") });
}
