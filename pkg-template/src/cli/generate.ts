// `sterna generate`

import type { GenerationResult } from "../types.js";
import { type LoadingOptions, loadForCommand } from "./load.js";
import { note, print, printJson, readStdin } from "./output.js";
import { type SamplingOptions, samplingOf } from "./sampling.js";

interface GenerateOptions extends LoadingOptions, SamplingOptions {
	prompt?: string;
	ids?: number[];
	json?: boolean;
}

/** One line on how fast it was. */
export function speedLine({ usage, timing }: GenerationResult): string {
	const prefill = `${usage.promptTokens} prompt tokens at ${timing.prefillTps.toFixed(1)}/s`;
	const decode = `${usage.completionTokens} tokens at ${timing.decodeTps.toFixed(1)}/s`;
	return `[${prefill}, ${decode}, first token after ${Math.round(timing.timeToFirstToken)} ms]`;
}

/** Continues a text on stdout. */
export async function generate(source: string, options: GenerateOptions, signal: AbortSignal): Promise<void> {
	const prompt = options.ids ?? options.prompt ?? (await readStdin("--prompt or --ids", signal));
	await using model = await loadForCommand(source, options, signal);
	const stream = model.generate(prompt, { ...samplingOf(options), signal });
	if (options.json) {
		await printJson(await stream);
		return;
	}
	for await (const { text } of stream) await print(text);
	await print("\n");
	note(speedLine(await stream), options.quiet);
}
