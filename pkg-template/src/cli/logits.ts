// `sterna logits`

import { InternalError } from "../errors.js";
import { f32Number, formatTable } from "./format.js";
import { type LoadingOptions, loadForCommand } from "./load.js";
import { print, printJson } from "./output.js";

const SHOWN = 5;

/** JSON has no NaN or infinity, and a model that gives them is broken. */
function checkFinite(row: Float32Array, position: number): void {
	const index = row.findIndex((value) => !Number.isFinite(value));
	if (index >= 0) {
		throw new InternalError(`The logit of token ${index} at position ${position} is ${row[index]}.`);
	}
}

/** The likeliest tokens of a row, the likeliest first. */
function likeliest(row: Float32Array): number[] {
	return Array.from(row.keys())
		.sort((a, b) => row[b]! - row[a]!)
		.slice(0, SHOWN);
}

/** Prints the logits of token ids. */
export async function logits(
	source: string,
	options: LoadingOptions & { ids: number[]; json?: boolean },
	signal: AbortSignal,
): Promise<void> {
	await using model = await loadForCommand(source, options, signal);
	const rows = await model.logits(options.ids, { signal });
	rows.forEach(checkFinite);
	if (options.json) {
		await printJson({ logits: rows.map((row) => Array.from(row, f32Number)) });
		return;
	}
	const table = rows.map((row, i) => [
		String(i),
		String(options.ids[i]),
		likeliest(row)
			.map((id) => `${id}: ${f32Number(row[id]!)}`)
			.join("  "),
	]);
	await print(`${formatTable([["position", "id", `likeliest ${SHOWN} next`], ...table])}\n`);
}
