// Measures the kernels of one or more modules, interleaved call by call, beside reading the same bytes.
// Runs in Node and in a page alike.

/** Weight bytes that the cycle of matrices fills: more than any cache keeps. */
const CYCLE_BYTES = 320e6;

const WARM_UP_MS = 250;

/** Makes a peak measurement take some milliseconds. */
const PEAK_STEPS = 2e6;

/** Multiply-accumulates of a step. */
const PEAK_MACS = 192;

/** `[name, rows, cols]` of BitNet b1.58 2B-4T; of its head an eighth. */
export const SHAPES = [
	["attention", 2560, 2560],
	["gate/up", 6912, 2560],
	["down", 2560, 6912],
	["head", 16032, 2560],
];

/** What is measured at each shape, the 8-bit rows at the head's and ternary weights at the others. `macs` kernels are bound by arithmetic, the others by memory. */
export const CASES = [
	{ name: "int8", tokens: 1 },
	{ name: "float", tokens: 1, float: true },
	{ name: "int8 grouped", tokens: 1, grouped: true },
	{ name: "float grouped", tokens: 1, float: true, grouped: true },
	{ name: "8-bit rows", tokens: 1, float: true, dense: "make_int8" },
	{ name: "4-bit rows", tokens: 1, float: true, dense: "make_int4" },
	{ name: "prefill int8", tokens: 48, macs: true },
	{ name: "prefill float grouped", tokens: 48, float: true, grouped: true, macs: true },
];

/** An instance of the benchmark module. What it imports belongs to the package's bindings: unused here. */
export async function instantiate(module) {
	const imports = {};
	for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
		if (kind !== "function") throw new Error(`the module imports a ${kind}: ${from}.${name}`);
		imports[from] ??= {};
		imports[from][name] = () => {
			throw new Error(`the benchmark called ${name}`);
		};
	}
	return (await WebAssembly.instantiate(module, imports)).exports;
}

function quantile(samples, at) {
	const sorted = [...samples].sort((a, b) => a - b);
	return sorted[Math.floor((sorted.length - 1) * at)];
}

/** Milliseconds that `call` takes. */
function time(call) {
	const start = performance.now();
	call();
	return performance.now() - start;
}

/** Lets the engine's second compiler finish. */
function warmUp(engine, index) {
	const end = performance.now() + WARM_UP_MS;
	while (performance.now() < end) {
		engine.linear(index());
		engine.read(index());
		engine.peak?.(PEAK_STEPS / 100);
	}
}

/**
 * One case at one shape, for every engine (`{ name: exports }`) in turn.
 * Gives an entry an engine: ms a call (median and p25), GB/s of weight bytes, the same for reading only,
 * the ratio of the two, and GMAC/s; for `macs` cases of the relaxed build also those of the multiply
 * instruction alone.
 */
export function measureCase(engines, [shape, rows, cols], test, rounds) {
	const count = Math.ceil((CYCLE_BYTES * (test.dense ? 1 : 4)) / (rows * cols));
	let bytes = 0;
	for (const engine of Object.values(engines)) {
		bytes = test.dense
			? engine[test.dense](rows, cols, count)
			: engine.make_ternary(rows, cols, count, test.grouped ? 1 : 0);
		engine.make_input(test.tokens, cols, test.float ? 1 : 0);
	}
	const samples = Object.keys(engines).map((name) => ({ name, linear: [], read: [], peak: [] }));
	let next = 0;
	const index = () => {
		next = (next + 1) % count;
		return next;
	};
	for (const { name } of samples) warmUp(engines[name], index);
	for (let round = 0; round < (test.macs ? rounds / 8 : rounds); round++) {
		for (const { name, linear, read, peak } of samples) {
			if (test.macs && engines[name].peak) peak.push(time(() => engines[name].peak(PEAK_STEPS)));
			linear.push(time(() => engines[name].linear(index())));
			read.push(time(() => engines[name].read(index())));
		}
	}
	return samples.map(({ name, linear, read, peak }) => {
		const gmacPerS = (rows * cols * test.tokens) / quantile(linear, 0.25) / 1e6;
		const peakGmacPerS = peak.length > 0 ? (PEAK_STEPS * PEAK_MACS) / quantile(peak, 0.25) / 1e6 : undefined;
		const [ms, readMs] = [linear, read].map((list) => quantile(list, 0.25));
		return {
			...{ engine: name, shape, rows, cols, case: test.name, tokens: test.tokens, bytes },
			...{ medianMs: quantile(linear, 0.5), p25Ms: ms, readMedianMs: quantile(read, 0.5), readP25Ms: readMs },
			...{ gbPerS: bytes / ms / 1e6, readGbPerS: bytes / readMs / 1e6, ofRead: readMs / ms },
			...{ gmacPerS, peakGmacPerS },
		};
	});
}

/** Layers that take turns: more than any cache keeps. */
const LAYERS = 16;

/** As the module numbers them. */
const KV_FORMATS = ["f32", "f16", "q16", "q8"];

/** Tokens that keys and values are of and how these are kept, and tokens that are computed. */
export const LAYER_CASES = [
	{ name: "decode", context: 512, kv: "q16", tokens: 1 },
	{ name: "decode", context: 512, kv: "f16", tokens: 1 },
	{ name: "decode", context: 512, kv: "q8", tokens: 1 },
	{ name: "prefill", context: 1, kv: "q16", tokens: 48 },
];

/**
 * A whole layer of 2B-4T, its matrix products alone and its attention alone, for every engine in turn. Gives an entry
 * an engine: ms (p25) of each, and the share of a layer that is no product.
 */
export function measureLayer(engines, { name: what, context, kv, tokens }, rounds) {
	const samples = Object.keys(engines).map((name) => ({ name, layer: [], products: [], attention: [] }));
	for (const engine of Object.values(engines)) {
		engine.make_layers(LAYERS, context, tokens, KV_FORMATS.indexOf(kv));
	}
	for (let round = 0; round < (tokens > 1 ? rounds / 4 : rounds); round++) {
		const index = round % LAYERS;
		const other = (index + LAYERS / 2) % LAYERS;
		for (const { name, layer, products, attention } of samples) {
			layer.push(time(() => engines[name].run_layer(index)));
			products.push(time(() => engines[name].run_products(other)));
			attention.push(time(() => engines[name].run_attention(index)));
		}
	}
	return samples.map(({ name, layer, products, attention }) => {
		const [layerMs, productsMs, attentionMs] = [layer, products, attention].map((list) =>
			quantile(list, 0.25),
		);
		return {
			engine: name,
			what,
			context,
			kv,
			tokens,
			layerMs,
			productsMs,
			attentionMs,
			restShare: 1 - productsMs / layerMs,
		};
	});
}

/** BitNet b1.58 2B-4T has so many layers, and a head of so many times the rows of what is measured of it. */
const MODEL = { layers: 30, heads: 8 };

/**
 * The share of a token's time that is no product, where the head was measured in 8 bits: that of a layer is of a layer
 * alone.
 */
export function restShareOfToken({ engine, tokens, layerMs, productsMs }, results) {
	const head = results.find((row) => row.engine === engine && row.case === "8-bit rows");
	if (tokens > 1 || !head) return undefined;
	return (MODEL.layers * (layerMs - productsMs)) / (MODEL.layers * layerMs + MODEL.heads * head.p25Ms);
}

/** Whether a case is measured at a shape. */
export function belongs([shape], test) {
	return (shape === "head") === Boolean(test.dense);
}
