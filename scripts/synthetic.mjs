// Writes a synthetic GGUF of a real model's shape with random weights, for benchmarks and memory tests.
import { parseArgs } from "node:util";
import { EMBEDDING_FORMATS, ENCODINGS, TERNARY_FORMATS } from "../benches/synthetic/encodings.mjs";
import { SHAPES } from "../benches/synthetic/shapes.mjs";
import { writeSynthetic } from "../benches/synthetic/write.mjs";
import { fail } from "./lib/run.mjs";

const { values: options, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		shape: { type: "string", default: "2b-4t" },
		arch: { type: "string" },
		format: { type: "string", default: "i2_s" },
		embedding: { type: "string", default: "f16" },
		layers: { type: "string" },
		vocab: { type: "string" },
		seed: { type: "string", default: "1" },
		help: { type: "boolean", default: false },
	},
});

const USAGE = `usage: node scripts/synthetic.mjs OUT.gguf [options]

  --shape       ${Object.keys(SHAPES).join(" | ")} (2b-4t)
  --arch        the architecture's name in the file: ${Object.values(SHAPES)
		.map(({ archs }) => archs.join(" | "))
		.join("; ")}
                (the first of the shape; llama.cpp knows bitnet and qwen3)
  --format      ternary weights: ${TERNARY_FORMATS.join(" | ")} (i2_s; q2_0 has a scale for each 128 weights)
  --embedding   ${EMBEDDING_FORMATS.join(" | ")} (f16)
  --layers N, --vocab N   fewer than the shape has
  --seed N      (1)

The full 2b-4t shape with an f16 embedding is 1.18 GB.`;

/** `name`'s value, which must be one of `allowed`. */
function choice(name, allowed, value = options[name]) {
	if (!allowed.includes(value)) fail(`--${name} must be one of ${allowed.join(", ")}, not '${value}'.`);
	return value;
}

function whole(name, least, value = options[name]) {
	const number = Number(value);
	if (!Number.isInteger(number) || number < least)
		fail(`--${name} must be a whole number, at least ${least}.`);
	return number;
}

if (options.help || positionals.length !== 1) {
	console.error(USAGE);
	process.exit(options.help ? 0 : 2);
}
const full = SHAPES[choice("shape", Object.keys(SHAPES))];
const shape = {
	...full,
	layers: whole("layers", 1, options.layers ?? full.layers),
	// The ASCII and the control tokens.
	vocab: whole("vocab", 131, options.vocab ?? full.vocab),
};
const plan = {
	shape,
	arch: choice("arch", full.archs, options.arch ?? full.archs[0]),
	format: choice("format", TERNARY_FORMATS),
	embedding: choice("embedding", EMBEDDING_FORMATS),
	seed: whole("seed", 0),
};
for (const cols of [shape.hidden, shape.ffn]) {
	const { elements } = ENCODINGS[plan.format];
	if (cols % elements !== 0)
		fail(`${plan.format} needs rows of a multiple of ${elements}; this shape has ${cols}.`);
}
const bytes = writeSynthetic(positionals[0], plan);
const { layers, vocab } = shape;
console.log(JSON.stringify({ file: positionals[0], bytes, ...plan, shape: options.shape, layers, vocab }));
