// The WebAssembly builds, apart by the instructions they may contain.

/** What `.cargo/config.toml` gives every build for wasm32, and relaxed SIMD on top. */
export const RELAXED_RUSTFLAGS = [
	...["--cfg", 'getrandom_backend="wasm_js"'],
	...[
		"-C",
		"target-feature=+simd128,+relaxed-simd,+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals",
	],
].join(" ");
