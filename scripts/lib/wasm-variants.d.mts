/** A WebAssembly build of the engine. */
export interface Variant {
	file: string;
	rustflags: string;
	wasmOptFeatures: string[];
}

export const VARIANTS: Record<"baseline" | "relaxed", Variant>;

export function variantEnv(variant: Variant, targetDir: string): Record<string, string>;
