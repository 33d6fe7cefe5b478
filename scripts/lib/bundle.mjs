// Bundles the TypeScript sources of the package; shared by the build and by the unit tests, which put a
// fake in the place of the wasm module.
import { build } from "esbuild";
import { inRoot } from "./paths.mjs";

const SOURCES = inRoot("pkg-template", "src");

// commander is CommonJS: it needs `require` for Node's own modules.
const REQUIRE_BANNER =
	'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

const common = {
	bundle: true,
	format: "esm",
	target: "es2022",
	splitting: true,
	sourcemap: true,
	sourcesContent: true,
	legalComments: "eof",
	logLevel: "warning",
	chunkNames: "chunk-[hash]",
};

/**
 * Bundles the browser entry and its workers, the Node entry with its thread and the command line into
 * `outDir`; `aliases` tells which script the bindings of each kind of build are.
 */
export async function bundlePackage(outDir, aliases, version) {
	const shared = {
		...common,
		alias: aliases,
		define: { STERNA_VERSION: JSON.stringify(version) },
	};
	await build({
		...shared,
		entryPoints: [`${SOURCES}/index.ts`, `${SOURCES}/worker.ts`, `${SOURCES}/thread.ts`],
		outdir: outDir,
		platform: "browser",
		minifySyntax: true,
		minifyWhitespace: true,
	});
	await build({
		...shared,
		// Service workers' scripts stand alone.
		entryPoints: [`${SOURCES}/isolation.ts`, `${SOURCES}/isolation-worker.ts`],
		outdir: outDir,
		platform: "browser",
		splitting: false,
		minifySyntax: true,
		minifyWhitespace: true,
	});
	await build({
		...shared,
		entryPoints: {
			index: `${SOURCES}/node.ts`,
			cli: `${SOURCES}/cli/main.ts`,
			thread: `${SOURCES}/node-thread.ts`,
		},
		outdir: `${outDir}/node`,
		platform: "node",
		banner: { js: REQUIRE_BANNER },
	});
}

/** Bundles one test file into `outfile`; packages stay imports. */
export async function bundleTests(entryPoints, outdir) {
	await build({
		...common,
		splitting: false,
		entryPoints,
		outdir,
		outExtension: { ".js": ".mjs" },
		sourcemap: "inline",
		platform: "node",
		packages: "external",
		define: { STERNA_VERSION: JSON.stringify("test") },
	});
}
