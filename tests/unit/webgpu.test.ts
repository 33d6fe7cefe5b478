// What is asked of WebGPU, and what the model says of kernels and devices that are not used, over a stand-in for both.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { loadModelIn } from "../../pkg-template/src/load-model.js";
import { localHost } from "../../pkg-template/src/local-host.js";
import type { LoadOptions } from "../../pkg-template/src/types.js";
import { fakeWasm, wasmError } from "../support/fake-wasm.js";

const bytes = new TextEncoder().encode("GGUF");
const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");

/** What adapters were asked for with. */
let requests: object[];
let fake: ReturnType<typeof fakeWasm>;

beforeEach(() => {
	requests = [];
	fake = fakeWasm();
	const requestAdapter = async (options: object) => {
		requests.push(options);
		return { features: new Set<string>(), info: { isFallbackAdapter: false } };
	};
	Object.defineProperty(globalThis, "navigator", { configurable: true, value: { gpu: { requestAdapter } } });
});

afterEach(() => {
	if (before) Object.defineProperty(globalThis, "navigator", before);
	else Reflect.deleteProperty(globalThis, "navigator");
});

const load = (options: LoadOptions) =>
	loadModelIn({ hasFileSystem: false, host: () => localHost(fake.platform) }, bytes, options);

test("the power preference reaches the browser and the module", async () => {
	for (const powerPreference of ["high-performance", "low-power"] as const) {
		requests.length = 0;
		const model = await load({ device: "webgpu", powerPreference });
		assert.equal(model.info.device, "webgpu");
		assert.deepEqual(requests, [{ powerPreference }]);
		assert.deepEqual(fake.log.loaderOptions?.gpu, { powerPreference, subgroups: false });
		await model.dispose();
	}
});

test("without a power preference the browser decides", async () => {
	await load({});
	assert.deepEqual(requests, [{}]);
	assert.deepEqual(fake.log.loaderOptions?.gpu, { powerPreference: "auto", subgroups: false });
});

test("other devices and power preferences are refused by name", async () => {
	for (const [options, message] of [
		[{ powerPreference: "fast" }, /'powerPreference' must be "auto" or "high-performance" or "low-power"/],
		[{ powerPreference: 1 }, /'powerPreference'/],
		[{ device: "npu" }, /'device' must be "auto" or "wasm" or "webgpu"/],
	] as const) {
		await assert.rejects(load(options as unknown as LoadOptions), { code: "invalid_argument", message });
	}
	assert.deepEqual(requests, []);
});

test("kernels that were left out are among the fallbacks", async () => {
	fake.log.rejectedKernels = ["singles separate, packed tiles: a kernel does not compile"];
	const { info } = await load({});
	assert.equal(info.device, "webgpu");
	assert.deepEqual(info.fallbacks, [{ device: "webgpu", reason: fake.log.rejectedKernels[0] }]);
});

test("a GPU that computes nothing right, or whose memory is full, makes way for the processor", async () => {
	for (const [code, reason] of [
		["unsupported_browser", "no kernels of the GPU can be used"],
		["out_of_memory", "the GPU's memory is full: close other tabs"],
		["device_lost", "the GPU was lost"],
	] as const) {
		fake.log.gpuError = wasmError(code, reason);
		const { info } = await load({});
		assert.equal(info.device, "wasm");
		assert.deepEqual(info.fallbacks, [{ device: "webgpu", reason }]);
		await assert.rejects(load({ device: "webgpu" }), { code, message: reason });
	}
});
