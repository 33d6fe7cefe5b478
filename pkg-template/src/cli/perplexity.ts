// `sterna perplexity`

import { readFile } from "node:fs/promises";
import { InvalidArgumentError } from "../errors.js";
import { f32Number } from "./format.js";
import { type LoadingOptions, loadForCommand } from "./load.js";
import { print, printJson, progressLine, readStdin } from "./output.js";

async function readText(file: string | undefined, signal: AbortSignal): Promise<string> {
	if (file === undefined) return readStdin("--text-file", signal);
	try {
		return await readFile(file, "utf8");
	} catch (cause) {
		throw new InvalidArgumentError(`'${file}' could not be read: ${(cause as Error).message}`, { cause });
	}
}

/** Prints how well the model predicts a text. */
export async function perplexity(
	source: string,
	options: LoadingOptions & { textFile?: string; json?: boolean },
	signal: AbortSignal,
): Promise<void> {
	const text = await readText(options.textFile, signal);
	await using model = await loadForCommand(source, options, signal);
	const line = progressLine(options.quiet);
	const show = ({ done, total }: { done: number; total: number }) =>
		line.show(`${Math.floor((100 * done) / total)} % evaluated, ${done} of ${total} tokens`);
	const result = await model.perplexity(text, { signal, onProgress: show }).finally(line.clear);
	if (options.json) {
		await printJson({ ...result, losses: Array.from(result.losses, f32Number) });
		return;
	}
	const { perplexity, loss, tokens } = result;
	await print(
		`perplexity ${perplexity.toFixed(4)} (loss ${loss.toFixed(5)} nats a token, ${tokens} tokens)\n`,
	);
}
