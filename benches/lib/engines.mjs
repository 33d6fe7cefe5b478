// What is measured: ways of running our package, and the peer. Each gets a browser of its own.
import { readFileSync } from "node:fs";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { PACKAGE, STRICT_PACKAGE } from "./server.mjs";
import { firstLine, openTab } from "./tab.mjs";

/** What headless Chromium needs to offer WebGPU, and to let the processor play the GPU. */
const WEBGPU_FLAGS = ["--enable-unsafe-webgpu", "--enable-features=Vulkan"];
const SOFTWARE_GPU_FLAGS = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
const WEBGPU = { label: "WebGPU", load: { device: "webgpu" }, browserFlags: WEBGPU_FLAGS };
const SOFTWARE_GPU = {
	label: "WebGPU in software",
	load: { device: "webgpu" },
	browserFlags: SOFTWARE_GPU_FLAGS,
};

/** Other ways of running our package, for `--compare`. `load` are options of `loadModel`. */
export const COMPARISONS = {
	"one-thread": { label: "1 thread", load: { threads: 1 } },
	strict: { label: "no relaxed SIMD", base: STRICT_PACKAGE },
	webgpu: WEBGPU,
	"software-gpu": SOFTWARE_GPU,
	"no-vnni": { label: "no AVX-VNNI", jsFlags: "--no-enable-avx-vnni" },
};

/** Whether this machine has a GPU that Chromium computes on. */
async function hasGpu(server) {
	const tab = await openTab(server, "adapter", { browserFlags: WEBGPU_FLAGS });
	try {
		return await tab.call("hasGpu");
	} finally {
		await tab.close();
	}
}

function ourEngine(options, { label, load, base = PACKAGE, jsFlags, browserFlags } = {}) {
	return {
		name: label ? `sterna, ${label}` : "sterna",
		page: "sterna",
		flags: { jsFlags, browserFlags },
		load: (url, { contextLength }) => ({ base, url, options: { contextLength, ...options, ...load } }),
	};
}

/** wllama, the llama.cpp of browsers. */
function peerEngine({ threads }, { label, browserFlags } = {}) {
	return {
		name: label ? `wllama, ${label}` : "wllama",
		page: "wllama",
		flags: { browserFlags },
		load: (url, { contextLength }) => ({ url, threads, contextLength, onGpu: Boolean(label) }),
	};
}

/**
 * What takes turns: our package with options of `loadModel`, then as each comparison changes that, then the peer
 * where the model is one for it. On `device` "webgpu" our package on a GPU comes first, played by the processor
 * where there is none.
 *
 * @param plan `{ device, loadOptions, comparisons, peer }`
 */
export async function enginesOf({ device, loadOptions, comparisons, peer }, server) {
	const compared = comparisons.map((name) => ourEngine(loadOptions, COMPARISONS[name]));
	if (device === "wasm") {
		return [ourEngine(loadOptions), ...compared, ...(peer ? [peerEngine(loadOptions)] : [])];
	}
	const gpu = (await hasGpu(server)) ? WEBGPU : SOFTWARE_GPU;
	return [
		...[ourEngine(loadOptions, gpu), ourEngine(loadOptions), ...compared],
		...(peer ? [peerEngine(loadOptions, gpu), peerEngine(loadOptions)] : []),
	];
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
