// `sterna tokenize`

import { formatTable } from "./format.js";
import { type LoadingOptions, loadForCommand } from "./load.js";
import { print, printJson } from "./output.js";

/** Prints a text's tokens. */
export async function tokenize(
	source: string,
	text: string,
	options: LoadingOptions & { special: boolean; json?: boolean },
	signal: AbortSignal,
): Promise<void> {
	await using model = await loadForCommand(source, options, signal);
	const ids = Array.from(await model.tokenize(text, { addSpecialTokens: options.special }));
	const tokens = await Promise.all(ids.map((id) => model.detokenize([id])));
	if (options.json) {
		await printJson({ ids, tokens });
		return;
	}
	await print(`${formatTable(ids.map((id, i) => [String(id), JSON.stringify(tokens[i])]))}\n`);
}
