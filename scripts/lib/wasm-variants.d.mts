/** A WebAssembly build of the engine. */
export interface Variant {
	file: string;
	isShared: boolean;
	rustflags: string;
	cargoArgs: string[];
	env: Record<string, string>;
	wasmOptFeatures: string[];
}

export const VARIANTS: Record<"baseline" | "relaxed" | "threads" | "relaxedThreads", Variant>;

export function variantEnv(variant: Variant, targetDir: string): Record<string, string>;
