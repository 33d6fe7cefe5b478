// The shapes of real models, and what a checkpoint of such a shape says and holds.

const BITNET = {
	hidden: 2560,
	ffn: 6912,
	layers: 30,
	heads: 20,
	kvHeads: 5,
	headDim: 128,
	vocab: 128256,
	context: 4096,
	eps: 1e-5,
	theta: 500000,
	archs: ["bitnet-b1.58", "bitnet", "bitnet-25"],
	subNorms: true,
	preTokenizer: "llama-bpe",
	addBos: true,
};

const BONSAI = {
	hidden: 2048,
	ffn: 6144,
	layers: 28,
	heads: 16,
	kvHeads: 8,
	headDim: 128,
	vocab: 151936,
	context: 32768,
	eps: 1e-6,
	theta: 1000000,
	archs: ["qwen3"],
	qkNorms: true,
	preTokenizer: "qwen2",
	addBos: false,
};

/**
 * The first of `archs` is the published files'; llama.cpp computes `bitnet` with SiLU, where `bitnet-b1.58`
 * means ReLU², which it does not know.
 */
export const SHAPES = { "2b-4t": BITNET, "bonsai-1.7b": BONSAI };

/**
 * A token for each byte of ASCII, filler, and the control tokens of Llama 3 at the end. Other bytes have none: what
 * random weights generate must be valid UTF-8, on which llama.cpp's server insists.
 */
function vocabulary(size) {
	// As byte-level vocabularies write what is not printable: space and control characters, then DEL.
	const bytes = Array.from({ length: 128 }, (_, byte) => {
		if (byte > 32 && byte < 127) return String.fromCharCode(byte);
		return String.fromCharCode(256 + Math.min(byte, 33));
	});
	const control = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];
	const filler = Array.from({ length: size - bytes.length - control.length }, (_, i) => `<t${i}>`);
	const tokens = [...bytes, ...filler, ...control];
	return { tokens, types: tokens.map((_, i) => (i < size - control.length ? 1 : 3)) };
}

/** The metadata of a checkpoint, as `gguf-header.mjs` takes it. */
export function metadata(shape, arch) {
	const { tokens, types } = vocabulary(shape.vocab);
	return [
		["general.architecture", "string", arch],
		["general.name", "string", "synthetic"],
		[`${arch}.vocab_size`, "u32", shape.vocab],
		[`${arch}.context_length`, "u32", shape.context],
		[`${arch}.embedding_length`, "u32", shape.hidden],
		[`${arch}.block_count`, "u32", shape.layers],
		[`${arch}.feed_forward_length`, "u32", shape.ffn],
		[`${arch}.rope.dimension_count`, "u32", shape.headDim],
		[`${arch}.attention.head_count`, "u32", shape.heads],
		[`${arch}.attention.head_count_kv`, "u32", shape.kvHeads],
		[`${arch}.attention.key_length`, "u32", shape.headDim],
		[`${arch}.attention.value_length`, "u32", shape.headDim],
		[`${arch}.attention.layer_norm_rms_epsilon`, "f32", shape.eps],
		[`${arch}.rope.freq_base`, "f32", shape.theta],
		["tokenizer.ggml.model", "string", "gpt2"],
		["tokenizer.ggml.pre", "string", shape.preTokenizer],
		["tokenizer.ggml.tokens", "array", ["string", tokens]],
		["tokenizer.ggml.token_type", "array", ["i32", types]],
		["tokenizer.ggml.merges", "array", ["string", []]],
		["tokenizer.ggml.bos_token_id", "u32", shape.vocab - 3],
		["tokenizer.ggml.eos_token_id", "u32", shape.vocab - 2],
		["tokenizer.ggml.add_bos_token", "bool", shape.addBos],
	];
}

/**
 * The tensors in the order of the file: `{ name, dims, kind }`, the first of `dims` being the row's length and
 * `kind` one of `"embedding"`, `"ternary"`, `"norm"`. The head is the embedding, as in the published models.
 */
export function tensors({ hidden, ffn, layers, heads, kvHeads, headDim, vocab, subNorms, qkNorms }) {
	const norm = (name, size) => ({ name, dims: [size], kind: "norm" });
	const ternary = (name, rows, cols) => ({ name, dims: [cols, rows], kind: "ternary" });
	const layer = (index) => {
		const of = (name) => `blk.${index}.${name}.weight`;
		return [
			norm(of("attn_norm"), hidden),
			norm(of("ffn_norm"), hidden),
			...(subNorms ? [norm(of("attn_sub_norm"), heads * headDim), norm(of("ffn_sub_norm"), ffn)] : []),
			...(qkNorms ? [norm(of("attn_q_norm"), headDim), norm(of("attn_k_norm"), headDim)] : []),
			ternary(of("attn_q"), heads * headDim, hidden),
			ternary(of("attn_k"), kvHeads * headDim, hidden),
			ternary(of("attn_v"), kvHeads * headDim, hidden),
			ternary(of("attn_output"), hidden, heads * headDim),
			ternary(of("ffn_gate"), ffn, hidden),
			ternary(of("ffn_up"), ffn, hidden),
			ternary(of("ffn_down"), hidden, ffn),
		];
	};
	return [
		{ name: "token_embd.weight", dims: [hidden, vocab], kind: "embedding" },
		norm("output_norm.weight", hidden),
		...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
	];
}
