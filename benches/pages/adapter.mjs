// Whether WebGPU finds a real GPU here: on none, or one that the processor plays, software is measured as such.

export async function hasGpu() {
	const adapter = await navigator.gpu?.requestAdapter();
	return Boolean(adapter && !adapter.info.isFallbackAdapter);
}
