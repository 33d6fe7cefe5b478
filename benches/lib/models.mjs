// The models of the benchmark: checkpoints of real models' shapes, written on first use and kept in the cache.
import { existsSync, mkdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { cacheDir, inRoot } from "../../scripts/lib/paths.mjs";
import { capture, fail } from "../../scripts/lib/run.mjs";
import { SHAPES } from "../synthetic/shapes.mjs";
import { writeSynthetic } from "../synthetic/write.mjs";

// `bitnet` and TQ2_0, and Q2_0 with a scale for each 64 weights, are what llama.cpp knows; Q2_0 with a scale for
// each 128 is how Bonsai is published.
const MODELS = [
	{ name: "2B-4T", shape: "2b-4t", arch: "bitnet", format: "tq2_0", embedding: "f16", peer: true },
	{ name: "Bonsai-1.7B", shape: "bonsai-1.7b", arch: "qwen3", format: "q2_0", embedding: "q2_0" },
	{
		...{ name: "Bonsai-1.7B g64", shape: "bonsai-1.7b", arch: "qwen3" },
		...{ format: "q2_0_g64", embedding: "q2_0_g64", peer: true },
	},
];

const QUICK = { layers: 4, vocab: 4096 };

function synthetic({ name, shape: shapeName, peer = false, ...encoding }, quick) {
	const shape = { ...SHAPES[shapeName], ...(quick && QUICK) };
	const { layers, vocab } = shape;
	const { arch, format, embedding } = encoding;
	const folder = join(cacheDir, "benches");
	const path = join(folder, `${[shapeName, arch, format, embedding, layers, vocab].join("-")}.gguf`);
	if (!existsSync(path)) {
		console.error(`writing ${basename(path)}`);
		mkdirSync(folder, { recursive: true });
		writeSynthetic(path, { shape, ...encoding });
	}
	const what = { shape: shapeName, ...encoding, layers, vocab };
	// A synthetic model's head is its embedding, so that a token reads every weight.
	return { name, path, fileBytes: statSync(path).size, what, headIsEmbedding: true, peer };
}

/** The synthetic models; the quick ones have few layers and a small vocabulary. */
export const syntheticModels = (quick) => MODELS.map((model) => synthetic(model, quick));

/** Whether a checkpoint has no tensor for the head; `undefined` where its header cannot be read. */
function headIsEmbedding(path) {
	const report = capture("node", [inRoot("pkg", "node", "cli.js"), "inspect", path, "--json"]);
	if (!report) return undefined;
	return !JSON.parse(report).tensors.some(
		({ name }) => name === "output.weight" || name === "lm_head.weight",
	);
}

/** A model of the user's. */
export function givenModel(file) {
	const path = resolve(file);
	if (!statSync(path, { throwIfNoEntry: false })?.isFile()) fail(`${file} is not a file.`);
	return {
		name: basename(path),
		path,
		fileBytes: statSync(path).size,
		headIsEmbedding: headIsEmbedding(path),
		peer: path.endsWith(".gguf"),
	};
}
