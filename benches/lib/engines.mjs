// What is measured: ways of running our package, and the peer. Each gets a browser of its own.
import { readFileSync } from "node:fs";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { PACKAGE, STRICT_PACKAGE } from "./server.mjs";
import { firstLine, openTab } from "./tab.mjs";

/** What headless Chromium needs to offer WebGPU, and to let the processor play the GPU. */
const WEBGPU_FLAGS = ["--enable-unsafe-webgpu", "--enable-features=Vulkan"];
const SOFTWARE_GPU_FLAGS = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

/** Other ways of running our package, for `--compare`. `load` are options of `loadModel`. */
export const COMPARISONS = {
	"one-thread": { label: "1 thread", load: { threads: 1 } },
	strict: { label: "no relaxed SIMD", base: STRICT_PACKAGE },
	webgpu: { label: "WebGPU", load: { device: "webgpu" }, browserFlags: WEBGPU_FLAGS },
	"software-gpu": {
		label: "WebGPU in software",
		load: { device: "webgpu" },
		browserFlags: SOFTWARE_GPU_FLAGS,
	},
	"no-vnni": { label: "no AVX-VNNI", jsFlags: "--no-enable-avx-vnni" },
};

/** Our package: with options of `loadModel`, then as each comparison changes that. */
export function ourEngines(options, comparisons) {
	const engine = ({ label, load, base = PACKAGE, jsFlags, browserFlags } = {}) => ({
		name: label ? `sterna, ${label}` : "sterna",
		page: "sterna",
		flags: { jsFlags, browserFlags },
		load: (url, { contextLength }) => ({ base, url, options: { contextLength, ...options, ...load } }),
	});
	return [engine(), ...comparisons.map((name) => engine(COMPARISONS[name]))];
}

/** wllama, the llama.cpp of browsers. */
export function peerEngine(threads) {
	return {
		name: "wllama",
		page: "wllama",
		load: (url, { contextLength }) => ({ url, threads, contextLength }),
	};
}

/** The versions of what is measured. */
export function versions() {
	const version = (...path) => JSON.parse(readFileSync(inRoot(...path, "package.json"), "utf8")).version;
	return { sterna: version("pkg"), wllama: version("node_modules", "@wllama", "wllama") };
}

/**
 * Opens an engine and loads a model into it.
 *
 * @returns the engine with its `tab` and what its page's `load` gave, or with `refusal`: why it does not run the
 * model
 */
export async function startEngine(engine, server, modelUrl, contextLength) {
	const tab = await openTab(server, engine.page, engine.flags);
	try {
		const loaded = await tab.callWatched("load", engine.load(modelUrl, { contextLength }));
		return { ...engine, tab, loaded };
	} catch (error) {
		await tab.close();
		return { ...engine, refusal: firstLine(error) };
	}
}
