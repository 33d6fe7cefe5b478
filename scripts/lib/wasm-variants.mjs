// The WebAssembly builds of the engine, apart by the instructions they may contain. A page downloads one.

const BASELINE = {
	rust: ["simd128", "bulk-memory", "sign-ext", "nontrapping-fptoint", "mutable-globals"],
	binaryen: [
		...["simd", "bulk-memory", "sign-ext", "nontrapping-float-to-int", "mutable-globals"],
		...["reference-types", "multivalue"],
	],
};

/** Safari rejects a module that contains one relaxed instruction. */
const RELAXED = { rust: ["relaxed-simd"], binaryen: ["relaxed-simd"] };

// Memory is shared, comes from outside, and grows as far as 32-bit addresses reach; wasm-bindgen sets up each
// thread's stack and thread-local storage with what is exported here.
const SHARED_MEMORY_LINK_ARGS = [
	...["--import-memory", "--shared-memory", "--max-memory=4294967296"],
	...["__wasm_init_tls", "__tls_size", "__tls_align", "__tls_base"].map((name) => `--export=${name}`),
];

/** A standard library with atomics is not shipped with Rust: it is built, from the toolchain's own sources. */
const THREADS = {
	rust: ["atomics"],
	binaryen: ["threads"],
	linkArgs: SHARED_MEMORY_LINK_ARGS,
	cargoArgs: ["-Zbuild-std=std,panic_abort"],
	env: { RUSTC_BOOTSTRAP: "1" },
};

function variant(file, ...extensions) {
	const all = (key) => extensions.flatMap((extension) => extension[key] ?? []);
	const features = [...BASELINE.rust, ...all("rust")].map((name) => `+${name}`).join(",");
	const linkArgs = all("linkArgs").map((arg) => ` -C link-arg=${arg}`);
	return {
		file,
		/** Whether threads share its memory. */
		isShared: extensions.includes(THREADS),
		/** What rustc is told; the baseline's are those of `.cargo/config.toml`. */
		rustflags: `--cfg getrandom_backend="wasm_js" -C target-feature=${features}${linkArgs.join("")}`,
		cargoArgs: all("cargoArgs"),
		env: Object.assign({}, ...extensions.map(({ env }) => env)),
		/** What wasm-opt may expect and emit, as its own options. */
		wasmOptFeatures: [...BASELINE.binaryen, ...all("binaryen")].map((name) => `--enable-${name}`),
	};
}

export const VARIANTS = {
	/** What every browser that the package supports has. */
	baseline: variant("sterna_bg.wasm"),
	relaxed: variant("sterna_relaxed_bg.wasm", RELAXED),
	threads: variant("sterna_threads_bg.wasm", THREADS),
	relaxedThreads: variant("sterna_relaxed_threads_bg.wasm", RELAXED, THREADS),
};

/** The environment in which cargo builds a variant, in a folder of its own below `targetDir`. */
export function variantEnv({ rustflags, file, env }, targetDir) {
	return {
		...env,
		CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: rustflags,
		CARGO_TARGET_DIR:
			file === VARIANTS.baseline.file ? targetDir : `${targetDir}/${file.replace(".wasm", "")}`,
	};
}
