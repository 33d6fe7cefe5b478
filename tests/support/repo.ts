// Files of the repository, as tests need them. The test runner tells where the repository is.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The repository's root folder. */
export const root = process.env.STERNA_ROOT ?? process.cwd();

/** A path inside the repository. */
export const inRoot = (...parts: string[]): string => join(root, ...parts);

/** One case of the embedded model's reference. */
export interface ReferenceCase {
	messages?: { role: string; content: string }[];
	prompt?: string;
	prompt_text?: string;
	prompt_ids: number[];
	greedy_ids: number[];
	greedy_text: string;
	/** How far the likeliest token is from the next, where that is least: ties may fall either way. */
	smallest_top2_margin: number;
}

/** What the embedded model's own implementation gives. */
export const bit7m: {
	cases: ReferenceCase[];
	perplexity: { text: string; ids: number[]; nll_per_token: number[]; perplexity: number };
} = JSON.parse(readFileSync(inRoot("tests", "fixtures", "bit-7m-reference.json"), "utf8"));

/** What llama.cpp gives for SmolLM2. */
export const smollm2: { prompt_ids: number[]; greedy_ids: number[]; text: string } = JSON.parse(
	readFileSync(inRoot("tests", "fixtures", "smollm2_ref.json"), "utf8"),
);

/** A tensor of a safetensors file, as numbers. */
export function readTensor(
	path: string,
	name: string,
): { shape: number[]; values: Float32Array | Int32Array } {
	const file = readFileSync(path);
	const headerLength = Number(file.readBigUInt64LE(0));
	const header = JSON.parse(file.subarray(8, 8 + headerLength).toString());
	const {
		dtype,
		shape,
		data_offsets: [start, end],
	} = header[name];
	const bytes = Uint8Array.from(file.subarray(8 + headerLength + start, 8 + headerLength + end));
	return { shape, values: dtype === "I32" ? new Int32Array(bytes.buffer) : new Float32Array(bytes.buffer) };
}

/** Texts and what the Llama-3 tokenizer makes of them, the beginning-of-sequence token in front. */
export const llama3Strings: { text: string; ids: number[] }[] = JSON.parse(
	readFileSync(inRoot("tests", "fixtures", "llama3_tokenizer_strings.json"), "utf8"),
);

/** The file that an environment variable of the test runner names. */
export function fileFromEnvironment(variable: string): string {
	const path = process.env[variable];
	if (!path) throw new Error(`${variable} is not set: run the tests with 'npm test'.`);
	return path;
}
