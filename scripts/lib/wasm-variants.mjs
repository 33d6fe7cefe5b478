// The WebAssembly builds of the engine, apart by the instructions they may contain. A page downloads one.

const BASELINE = {
	rust: ["simd128", "bulk-memory", "sign-ext", "nontrapping-fptoint", "mutable-globals"],
	binaryen: [
		...["simd", "bulk-memory", "sign-ext", "nontrapping-float-to-int", "mutable-globals"],
		...["reference-types", "multivalue"],
	],
};

function variant(file, rust, binaryen) {
	const features = [...BASELINE.rust, ...rust].map((name) => `+${name}`).join(",");
	return {
		file,
		/** What rustc is told; the baseline's are those of `.cargo/config.toml`. */
		rustflags: `--cfg getrandom_backend="wasm_js" -C target-feature=${features}`,
		/** What wasm-opt may expect and emit, as its own options. */
		wasmOptFeatures: [...BASELINE.binaryen, ...binaryen].map((name) => `--enable-${name}`),
	};
}

export const VARIANTS = {
	/** What every browser that the package supports has. */
	baseline: variant("sterna_bg.wasm", [], []),
	/** Safari rejects a module that contains one relaxed instruction. */
	relaxed: variant("sterna_relaxed_bg.wasm", ["relaxed-simd"], ["relaxed-simd"]),
};

/** The environment in which cargo builds a variant, in a folder of its own below `targetDir`. */
export function variantEnv({ rustflags, file }, targetDir) {
	return {
		CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: rustflags,
		CARGO_TARGET_DIR:
			file === VARIANTS.baseline.file ? targetDir : `${targetDir}/${file.replace(".wasm", "")}`,
	};
}
