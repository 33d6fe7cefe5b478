// What the browser's WebGPU offers, asked before the wasm module opens a device: whether a real GPU is there, and
// a feature that the module's bindings to WebGPU cannot ask for.

import type { GpuOptions } from "./wasm-api.js";

/** The part of WebGPU that is used. */
interface Adapter {
	features: ReadonlySet<string>;
	isFallbackAdapter?: boolean;
	info?: { isFallbackAdapter?: boolean };
}
interface DeviceDescriptor {
	requiredFeatures?: Iterable<string>;
}
interface Gpu {
	requestAdapter(options: { powerPreference?: string }): Promise<Adapter | null>;
}
type RequestDevice = (this: Adapter, descriptor?: DeviceDescriptor) => Promise<unknown>;

/** What {@link lookForGpu} found. */
export type FoundGpu =
	| { kind: "none"; reason: string }
	/** `isSoftware`: the processor plays the GPU, which is slower than using it directly. */
	| { kind: "gpu"; isSoftware: boolean; options: GpuOptions };

const FEATURE = "subgroups";
let isWrapped = false;

/** Puts {@link FEATURE} into every request for a device whose adapter has it. */
function askForSubgroups(): void {
	const { GPUAdapter } = globalThis as unknown as {
		GPUAdapter: { prototype: { requestDevice: RequestDevice } };
	};
	if (isWrapped) return;
	isWrapped = true;
	const request = GPUAdapter.prototype.requestDevice;
	GPUAdapter.prototype.requestDevice = function (descriptor) {
		if (!this.features.has(FEATURE)) return request.call(this, descriptor);
		const requiredFeatures = new Set([...(descriptor?.requiredFeatures ?? []), FEATURE]);
		return request.call(this, { ...descriptor, requiredFeatures: [...requiredFeatures] });
	};
}

/** Looks for a GPU. */
export async function lookForGpu(
	powerPreference: NonNullable<GpuOptions["powerPreference"]>,
): Promise<FoundGpu> {
	const gpu = (globalThis.navigator as { gpu?: Gpu } | undefined)?.gpu;
	if (!gpu) return { kind: "none", reason: "There is no WebGPU here." };
	const wanted = powerPreference === "auto" ? {} : { powerPreference };
	let adapter: Adapter | null;
	try {
		adapter = await gpu.requestAdapter(wanted);
	} catch (error) {
		return { kind: "none", reason: `WebGPU failed: ${(error as Error).message}` };
	}
	if (!adapter) return { kind: "none", reason: "WebGPU finds no GPU that it may use." };
	const subgroups = adapter.features.has(FEATURE);
	if (subgroups) askForSubgroups();
	const isSoftware = adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
	return { kind: "gpu", isSoftware, options: { powerPreference, subgroups } };
}
