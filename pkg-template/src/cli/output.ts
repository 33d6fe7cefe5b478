// Writes results to stdout, waiting where the reader is slower, and reads what is piped in.

import { once } from "node:events";
import { text } from "node:stream/consumers";
import { abortedBy, InvalidArgumentError, throwIfAborted } from "../errors.js";

/** Writes to stdout. */
export async function print(output: string): Promise<void> {
	if (!process.stdout.write(output)) await once(process.stdout, "drain");
}

/** Writes a value as JSON, on one line. */
export async function printJson(value: unknown): Promise<void> {
	await print(`${JSON.stringify(value)}\n`);
}

/** Writes to stderr, unless told to be quiet. */
export function note(message: string, quiet: boolean | undefined): void {
	if (!quiet) process.stderr.write(`${message}\n`);
}

/** A line on stderr that is overwritten; only a terminal that is not to be quiet shows it. */
export function progressLine(quiet: boolean | undefined) {
	const { stderr } = process;
	const isShown = !quiet && stderr.isTTY;
	const write = (line: string) => {
		if (isShown) stderr.write(`\r\x1b[K${line.slice(0, (stderr.columns || 80) - 1)}`);
	};
	return { show: write, clear: () => write("") };
}

/** All of stdin; refused when it is a terminal, where nobody would know to type. */
export async function readStdin(insteadOf: string, signal: AbortSignal): Promise<string> {
	const { stdin } = process;
	if (stdin.isTTY) throw new InvalidArgumentError(`Give ${insteadOf}, or pipe the text in.`);
	throwIfAborted(signal);
	const stop = () => stdin.destroy(abortedBy(signal));
	signal.addEventListener("abort", stop, { once: true });
	try {
		return await text(stdin);
	} finally {
		signal.removeEventListener("abort", stop);
	}
}

/** Ends the program in silence when the reader of stdout has seen enough, as `head` does. */
export function endWithReader(): void {
	process.stdout.on("error", (error: NodeJS.ErrnoException) => {
		if (error.code === "EPIPE") process.exit(0);
		throw error;
	});
}
