// `sterna chat`: a conversation on the terminal, or with each line that is piped in.

import { createInterface } from "node:readline";
import { SternaError } from "../errors.js";
import type { Model } from "../model.js";
import type { Message } from "../types.js";
import { speedLine } from "./generate.js";
import { type LoadingOptions, loadForCommand } from "./load.js";
import { note, print } from "./output.js";
import { type SamplingOptions, samplingOf } from "./sampling.js";

interface ChatOptions extends LoadingOptions, SamplingOptions {
	system?: string;
}

/** Prints the answer and returns it, or what there is of it when it is interrupted. */
async function answer(model: Model, messages: Message[], options: ChatOptions, signal: AbortSignal) {
	const stream = model.chat(messages, { ...samplingOf(options), signal });
	try {
		for await (const { text } of stream) await print(text);
		await print("\n");
		note(speedLine(await stream), options.quiet);
	} catch (error) {
		await print("\n");
		if (!(error instanceof SternaError && error.code === "aborted")) throw error;
	}
	return stream.text;
}

/** Holds a conversation until the input ends. */
export async function chat(source: string, options: ChatOptions, signal: AbortSignal): Promise<void> {
	await using model = await loadForCommand(source, options, signal);
	// From here on Ctrl-C stops an answer, not the program.
	process.removeAllListeners("SIGINT");
	const start: Message[] = options.system ? [{ role: "system", content: options.system }] : [];
	let messages = [...start];
	const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
	const lines = createInterface({
		input: process.stdin,
		output: isTerminal ? process.stdout : undefined,
		prompt: isTerminal ? "> " : "",
	});
	let current: AbortController | undefined;
	const interrupt = () => (current ? current.abort() : lines.close());
	lines.on("SIGINT", interrupt);
	process.on("SIGINT", interrupt);
	lines.prompt();
	for await (const line of lines) {
		if (line.trim() === "/clear") messages = [...start];
		else if (line.trim() !== "") {
			current = new AbortController();
			messages.push({ role: "user", content: line });
			try {
				messages.push({
					role: "assistant",
					content: await answer(model, messages, options, current.signal),
				});
			} finally {
				current = undefined;
			}
		}
		lines.prompt();
	}
}
