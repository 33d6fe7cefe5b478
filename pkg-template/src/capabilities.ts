// What the browser, or Node, offers.

import { relaxedSimd, simd, threads } from "wasm-feature-detect";
import type { Capabilities } from "./types.js";

/** The response headers that make a page cross-origin isolated. */
const ISOLATION_HEADERS = {
	"Cross-Origin-Opener-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
};

/**
 * What this browser, or Node, offers to Sterna, and what the page's server could do for more.
 *
 * ```ts
 * const { supported, reason } = await capabilities();
 * if (!supported) show(reason);
 * ```
 */
export async function capabilities(): Promise<Capabilities> {
	const [hasSimd, hasRelaxedSimd, hasThreads] = await Promise.all([simd(), relaxedSimd(), threads()]);
	// Node has shared memory without any header.
	const isPage = typeof globalThis.crossOriginIsolated === "boolean";
	const isIsolated = isPage ? globalThis.crossOriginIsolated : hasThreads;
	return {
		wasm: { simd: hasSimd, relaxedSimd: hasRelaxedSimd, threads: hasThreads },
		workers: typeof Worker === "function",
		crossOriginIsolated: isIsolated,
		webgpu: typeof navigator === "object" && "gpu" in navigator,
		missingHeaders: isPage && !isIsolated ? { ...ISOLATION_HEADERS } : {},
		supported: hasSimd,
		reason: hasSimd ? undefined : "WebAssembly SIMD is missing: update the browser.",
	};
}
