// Writes a synthetic GGUF of a real model's shape with random weights, for benchmarks and memory tests:
// the numbers mean nothing, every size is true. The weights depend on the seed alone.
import { closeSync, openSync, writeSync } from "node:fs";
import { parseArgs } from "node:util";

const SHAPES = {
	"2b-4t": {
		arch: "bitnet-b1.58",
		hidden: 2560,
		ffn: 6912,
		layers: 30,
		heads: 20,
		kvHeads: 5,
		headDim: 128,
		vocab: 128256,
		context: 4096,
	},
};

const { values: options, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		shape: { type: "string", default: "2b-4t" },
		layers: { type: "string" },
		vocab: { type: "string" },
		seed: { type: "string", default: "1" },
		help: { type: "boolean", default: false },
	},
});

if (options.help || positionals.length !== 1 || !(options.shape in SHAPES)) {
	console.error(`usage: node scripts/synthetic.mjs OUT.gguf [--shape ${Object.keys(SHAPES).join("|")}] [--layers N] [--vocab N] [--seed N]
Writes random I2_S weights with an F16 embedding; the full 2b-4t shape is 1.18 GB.`);
	process.exit(options.help ? 0 : 2);
}

const shape = { ...SHAPES[options.shape] };
if (options.layers) shape.layers = Number(options.layers);
if (options.vocab) shape.vocab = Number(options.vocab);

const TYPE = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 };
const GGML = { F32: 0, F16: 1, I2_S: 36 };
const ALIGNMENT = 32;
const PIECE = 1 << 20;

/** xorshift32: small, fast, the same everywhere. */
function random(seed) {
	let state = seed >>> 0 || 1;
	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state >>> 0;
	};
}

/** Bytes of the 81 ways to fill four 2-bit fields with 0, 1, 2. */
const TERNARY_BYTES = Uint8Array.from(
	{ length: 81 },
	(_, i) =>
		(i % 3) | ((Math.floor(i / 3) % 3) << 2) | ((Math.floor(i / 9) % 3) << 4) | (Math.floor(i / 27) << 6),
);

/** A piece of random ternary codes, cut at a random place for each tensor. */
function ternaryPiece(next) {
	return Uint8Array.from({ length: PIECE + 4096 }, () => TERNARY_BYTES[next() % 81]);
}

/** A piece of f16 values, normal with a deviation of 0.02. */
function halfPiece(next) {
	const uniform = () => (next() + 0.5) / 2 ** 32;
	const half = (x) => {
		const [bits] = new Uint32Array(new Float32Array([x]).buffer);
		const exponent = ((bits >> 23) & 0xff) - 112;
		return exponent <= 0 ? 0 : ((bits >> 16) & 0x8000) | (exponent << 10) | ((bits >> 13) & 0x3ff);
	};
	const values = Uint16Array.from({ length: PIECE / 2 + 2048 }, () =>
		half(0.02 * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())),
	);
	return new Uint8Array(values.buffer);
}

class Header {
	#parts = [];
	u32(value) {
		const bytes = Buffer.alloc(4);
		bytes.writeUInt32LE(value);
		this.#parts.push(bytes);
	}
	u64(value) {
		const bytes = Buffer.alloc(8);
		bytes.writeBigUInt64LE(BigInt(value));
		this.#parts.push(bytes);
	}
	f32(value) {
		const bytes = Buffer.alloc(4);
		bytes.writeFloatLE(value);
		this.#parts.push(bytes);
	}
	string(text) {
		const bytes = Buffer.from(text);
		this.u64(bytes.length);
		this.#parts.push(bytes);
	}
	value(type, value) {
		if (type === "array") {
			const [elementType, elements] = value;
			this.u32(TYPE[elementType]);
			this.u64(elements.length);
			for (const element of elements) this.value(elementType, element);
		} else if (type === "string") this.string(value);
		else if (type === "f32") this.f32(value);
		else if (type === "bool") this.#parts.push(Buffer.from([value ? 1 : 0]));
		else this.u32(value);
	}
	entry(key, type, value) {
		this.string(key);
		this.u32(TYPE[type]);
		this.value(type, value);
	}
	bytes() {
		return Buffer.concat(this.#parts);
	}
}

/** 256 byte tokens, filler, and the control tokens of Llama 3 at the end. */
function vocabulary(size) {
	const printable = [...Array(256).keys()].filter(
		(b) => (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174,
	);
	const others = [...Array(256).keys()].filter((b) => !printable.includes(b));
	const bytes = [
		...printable.map((b) => String.fromCharCode(b)),
		...others.map((_, i) => String.fromCharCode(256 + i)),
	];
	const control = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];
	const filler = Array.from({ length: size - bytes.length - control.length }, (_, i) => `<t${i}>`);
	const tokens = [...bytes, ...filler, ...control];
	return { tokens, types: tokens.map((_, i) => (i < size - control.length ? 1 : 3)) };
}

function metadata({ arch, hidden, ffn, layers, heads, kvHeads, headDim, vocab, context }) {
	const { tokens, types } = vocabulary(vocab);
	return [
		["general.architecture", "string", arch],
		["general.name", "string", "synthetic"],
		[`${arch}.vocab_size`, "u32", vocab],
		[`${arch}.context_length`, "u32", context],
		[`${arch}.embedding_length`, "u32", hidden],
		[`${arch}.block_count`, "u32", layers],
		[`${arch}.feed_forward_length`, "u32", ffn],
		[`${arch}.rope.dimension_count`, "u32", headDim],
		[`${arch}.attention.head_count`, "u32", heads],
		[`${arch}.attention.head_count_kv`, "u32", kvHeads],
		[`${arch}.attention.layer_norm_rms_epsilon`, "f32", 1e-5],
		[`${arch}.rope.freq_base`, "f32", 500000],
		["tokenizer.ggml.model", "string", "gpt2"],
		["tokenizer.ggml.pre", "string", "llama-bpe"],
		["tokenizer.ggml.tokens", "array", ["string", tokens]],
		["tokenizer.ggml.token_type", "array", ["i32", types]],
		["tokenizer.ggml.merges", "array", ["string", []]],
		["tokenizer.ggml.bos_token_id", "u32", vocab - 3],
		["tokenizer.ggml.eos_token_id", "u32", vocab - 2],
		["tokenizer.ggml.add_bos_token", "bool", true],
	];
}

function tensors({ hidden, ffn, layers, heads, kvHeads, headDim, vocab }) {
	const vector = (name, size) => ({ name, dims: [size], type: "F32", bytes: 4 * size });
	const ternary = (name, rows, cols) => ({
		name,
		dims: [cols, rows],
		type: "I2_S",
		bytes: (rows * cols) / 4 + 32,
	});
	const list = [
		{ name: "token_embd.weight", dims: [hidden, vocab], type: "F16", bytes: 2 * hidden * vocab },
		vector("output_norm.weight", hidden),
	];
	for (let layer = 0; layer < layers; layer++) {
		const of = (name) => `blk.${layer}.${name}.weight`;
		list.push(
			vector(of("attn_norm"), hidden),
			vector(of("ffn_norm"), hidden),
			vector(of("attn_sub_norm"), heads * headDim),
			vector(of("ffn_sub_norm"), ffn),
			ternary(of("attn_q"), heads * headDim, hidden),
			ternary(of("attn_k"), kvHeads * headDim, hidden),
			ternary(of("attn_v"), kvHeads * headDim, hidden),
			ternary(of("attn_output"), hidden, heads * headDim),
			ternary(of("ffn_gate"), ffn, hidden),
			ternary(of("ffn_up"), ffn, hidden),
			ternary(of("ffn_down"), hidden, ffn),
		);
	}
	return list;
}

const padded = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

const entries = metadata(shape);
const list = tensors(shape);
const header = new Header();
header.u32(0x46554747);
header.u32(3);
header.u64(list.length);
header.u64(entries.length);
for (const [key, type, value] of entries) header.entry(key, type, value);
let offset = 0;
for (const tensor of list) {
	header.string(tensor.name);
	header.u32(tensor.dims.length);
	for (const dim of tensor.dims) header.u64(dim);
	header.u32(GGML[tensor.type]);
	header.u64(offset);
	offset += padded(tensor.bytes);
}

const next = random(Number(options.seed));
const codes = ternaryPiece(next);
const halves = halfPiece(next);
const scale = new Float32Array(8).fill(1 / Math.sqrt((shape.hidden * 2) / 3));

const file = openSync(positionals[0], "w");
let written = 0;
const write = (bytes) => {
	written += writeSync(file, bytes);
};
const repeat = (piece, bytes, step) => {
	const start = (next() % 2048) * step;
	for (let left = bytes; left > 0; left -= PIECE) write(piece.subarray(start, start + Math.min(left, PIECE)));
};
const align = () => write(Buffer.alloc(padded(written) - written));

write(header.bytes());
align();
for (const { type, bytes, dims } of list) {
	if (type === "F32") write(new Uint8Array(new Float32Array(dims[0]).fill(1).buffer));
	else if (type === "F16") repeat(halves, bytes, 2);
	else {
		repeat(codes, bytes - 32, 1);
		write(new Uint8Array(scale.buffer));
	}
	align();
}
closeSync(file);
console.log(JSON.stringify({ file: positionals[0], bytes: written, ...shape }));
