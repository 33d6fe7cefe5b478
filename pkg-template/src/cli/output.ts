// Writes results to stdout, waiting where the reader is slower, and reads what is piped in.

import { once } from "node:events";
import { text } from "node:stream/consumers";
import { InvalidArgumentError } from "../errors.js";

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

/** All of stdin; refused when it is a terminal, where nobody would know to type. */
export async function readStdin(insteadOf: string): Promise<string> {
	if (process.stdin.isTTY) throw new InvalidArgumentError(`Give ${insteadOf}, or pipe the text in.`);
	return text(process.stdin);
}
