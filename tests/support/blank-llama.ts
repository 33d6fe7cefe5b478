// The files of a Llama model of one small layer whose weights are all zero: it says nothing, but its
// tokenizer is the one that it is given.

/** The checkpoint's files by name. */
export function blankLlama(vocabSize: number, tokenizerJson: Uint8Array): Map<string, Uint8Array> {
	const hidden = 32;
	const config = {
		architectures: ["LlamaForCausalLM"],
		model_type: "llama",
		vocab_size: vocabSize,
		hidden_size: hidden,
		intermediate_size: hidden,
		num_hidden_layers: 1,
		num_attention_heads: 1,
		num_key_value_heads: 1,
		hidden_act: "silu",
		max_position_embeddings: 64,
		rms_norm_eps: 1e-5,
		rope_theta: 10000,
		tie_word_embeddings: true,
		torch_dtype: "float16",
	};
	const square = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"]
		.concat("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
		.map((name) => [`model.layers.0.${name}.weight`, [hidden, hidden]] as const);
	const norms = [
		"model.norm",
		"model.layers.0.input_layernorm",
		"model.layers.0.post_attention_layernorm",
	].map((name) => [`${name}.weight`, [hidden]] as const);
	const tensors = [["model.embed_tokens.weight", [vocabSize, hidden]] as const, ...square, ...norms];
	const header: Record<string, unknown> = {};
	let end = 0;
	for (const [name, shape] of tensors) {
		const start = end;
		end += 2 * shape.reduce((product, size) => product * size, 1);
		header[name] = { dtype: "F16", shape, data_offsets: [start, end] };
	}
	const headerBytes = new TextEncoder().encode(JSON.stringify(header));
	const weights = new Uint8Array(8 + headerBytes.length + end);
	new DataView(weights.buffer).setBigUint64(0, BigInt(headerBytes.length), true);
	weights.set(headerBytes, 8);
	return new Map([
		["config.json", new TextEncoder().encode(JSON.stringify(config))],
		["tokenizer.json", tokenizerJson],
		["model.safetensors", weights],
	]);
}
