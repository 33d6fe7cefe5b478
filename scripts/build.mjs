// Builds the publishable npm package into pkg/: Rust → wasm → bindings → optimiser → bundles and types.
//
//   npm run build             the release package
//   npm run build -- --quick  no link-time optimisation and no wasm-opt: for trying a change (slow at run time)
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { inRoot, targetDir } from "./lib/paths.mjs";
import { run, step } from "./lib/run.mjs";
import { VARIANTS } from "./lib/wasm-variants.mjs";
import { setup } from "./setup.mjs";

const pkg = inRoot("pkg");
const template = inRoot("pkg-template");
const bindings = join(targetDir, "sterna-web");

// What every browser that the package supports has, and every build uses. Relaxed SIMD is not in it: Safari
// rejects a module that contains one such instruction.
const WASM_FEATURES = [
	"simd",
	"bulk-memory",
	"sign-ext",
	"nontrapping-float-to-int",
	"mutable-globals",
	"reference-types",
	"multivalue",
];

const QUICK_PROFILE = {
	CARGO_PROFILE_RELEASE_LTO: "off",
	CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16",
};

function buildWasm({ name, args, env }, quick) {
	step(`Rust → wasm: ${name}`);
	// A folder each: builds with different flags would replace one another's dependencies.
	const target = join(targetDir, "variants", name);
	run("cargo", ["build", "--locked", "--release", "--lib", "--target", "wasm32-unknown-unknown", ...args], {
		env: { ...(quick ? QUICK_PROFILE : {}), ...env, CARGO_TARGET_DIR: target },
	});
	run("wasm-bindgen", [
		...["--target", "web", "--omit-default-module-path", "--remove-producers-section"],
		...["--no-typescript", "--out-name", name, "--out-dir", bindings],
		join(target, "wasm32-unknown-unknown", "release", "sterna.wasm"),
	]);
}

function optimiseWasm({ name, optimiser }, quick) {
	const source = join(bindings, `${name}_bg.wasm`);
	const output = join(pkg, `${name}_bg.wasm`);
	if (quick) {
		cpSync(source, output);
		return;
	}
	const features = [...WASM_FEATURES, ...optimiser].map((feature) => `--enable-${feature}`);
	run("wasm-opt", ["-O3", "--strip-debug", ...features, source, "-o", output]);
}

async function bundle(version) {
	step("Bundles and types");
	const { bundlePackage } = await import("./lib/bundle.mjs");
	await bundlePackage(pkg, bindings, version);
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

/** Prints what a page downloads: the size of each script and of the wasm module, plain and compressed. */
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
	rmSync(bindings, { recursive: true, force: true });
	for (const variant of VARIANTS) {
		buildWasm(variant, quick);
		optimiseWasm(variant, quick);
	}
	await bundle(copyTemplate());
	printSizes();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	setup({ buildOnly: true });
	await buildPackage({ quick: process.argv.includes("--quick") });
}
