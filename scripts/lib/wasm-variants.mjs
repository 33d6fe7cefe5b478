// The WebAssembly builds, apart by the instructions they may contain.

/** What a build for wasm32 with more than `.cargo/config.toml` allows is given in its place. */
const rustflags = (...features) =>
	[
		...["--cfg", 'getrandom_backend="wasm_js"'],
		"-C",
		`target-feature=${["+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals", ...features].join(",")}`,
	].join(" ");

/** Relaxed SIMD, which Safari lacks. */
export const RELAXED_RUSTFLAGS = rustflags("+relaxed-simd");

// Memory is shared, comes from outside, and grows as far as 32-bit addresses reach; wasm-bindgen sets up each
// thread's stack and thread-local storage with what is exported here.
const SHARED_MEMORY = [
	"--import-memory",
	"--shared-memory",
	"--max-memory=4294967296",
	...["__wasm_init_tls", "__tls_size", "__tls_align", "__tls_base"].map((name) => `--export=${name}`),
]
	.map((arg) => `-C link-arg=${arg}`)
	.join(" ");

/** A standard library with atomics is not shipped: it is built, from the toolchain's own sources. */
const OWN_STD = { args: ["-Zbuild-std=std,panic_abort"], env: { RUSTC_BOOTSTRAP: "1" } };

/**
 * The builds of the package: `name` is that of the files, `optimiser` what wasm-opt may use besides the
 * baseline's features.
 */
export const VARIANTS = [
	{ name: "sterna", args: [], env: {}, optimiser: [] },
	{
		name: "sterna_threads",
		args: OWN_STD.args,
		env: { ...OWN_STD.env, RUSTFLAGS: `${rustflags("+atomics")} ${SHARED_MEMORY}` },
		optimiser: ["threads"],
	},
];
