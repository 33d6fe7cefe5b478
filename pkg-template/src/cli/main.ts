#!/usr/bin/env node
// `sterna`: the package's engine on the command line. Results go to stdout, everything else to stderr.

import { Command, CommanderError, Option } from "commander";
import { SternaError } from "../errors.js";
import { idsOption, integerOption, numberOption } from "./arguments.js";
import { chat } from "./chat.js";
import { generate } from "./generate.js";
import { inspect } from "./inspect.js";
import { interruptSignal } from "./interrupt.js";
import { logits } from "./logits.js";
import { endWithReader } from "./output.js";
import { perplexity } from "./perplexity.js";
import { tokenize } from "./tokenize.js";

const EXIT = { error: 1, usage: 2, interrupted: 130 };

const MODEL =
	"a .gguf or .safetensors file, a folder with config.json, a URL of either, or hf:owner/repo[/file][@revision]";

/** The options of every command that loads a model. */
function loading(command: Command): Command {
	return command
		.argument("<model>", MODEL)
		.option("-c, --context <tokens>", "size of the context window", integerOption(1))
		.addOption(new Option("--kv <format>", "how keys and values are kept").choices(["f32", "f16", "q16", "q8"]))
		.addOption(
			new Option("--activations <kind>", "override how inputs of ternary layers are rounded").choices([
				"auto",
				"int8",
				"float",
			]),
		)
		.addOption(
			new Option("--embedding <format>", "how the embedding and LM head are kept").choices([
				"auto",
				"file",
				"f16",
				"q8",
				"q4",
			]),
		)
		.addOption(new Option("--i2s-layout <layout>", "byte order of I2_S tensors").choices(["x86", "arm"]))
		.addOption(new Option("--device <device>", "what computes").choices(["auto", "wasm", "webgpu"]))
		.option("--threads <count>", "how many threads compute (default: by the machine)", integerOption(1))
		.option("-q, --quiet", "no progress on stderr");
}

/** The options of every command that generates text. */
function sampling(command: Command): Command {
	return command
		.option("-n, --max-tokens <count>", "most tokens to generate", integerOption(1))
		.option("-t, --temperature <number>", "0 always takes the likeliest token", numberOption(0, 100))
		.option("--top-k <count>", "sample among the likeliest tokens only", integerOption(0))
		.option("--top-p <share>", "sample among tokens that make up this probability", numberOption(0, 1))
		.option(
			"--min-p <share>",
			"leave out tokens less likely than this share of the likeliest",
			numberOption(0, 1),
		)
		.option(
			"--repetition-penalty <factor>",
			"make repeated tokens less likely (1: no change)",
			numberOption(0.01, 100),
		)
		.option("--seed <integer>", "make sampling repeatable", integerOption(0))
		.option("--stop <text...>", "end before any of these texts")
		.option("--ignore-eos", "go on past the model's end-of-sequence tokens");
}

function buildProgram(signal: AbortSignal): Command {
	const program = new Command("sterna")
		.description(
			"Runs ternary (BitNet b1.58) language models: the engine of the web package, on the command line.",
		)
		.version(STERNA_VERSION)
		.showHelpAfterError("(sterna --help and sterna COMMAND --help tell more)")
		.addHelpText(
			"after",
			`
MODEL is ${MODEL}.

Examples:
  sterna inspect model.gguf
  sterna generate model.gguf -p "Once upon a time" -n 64
  sterna chat hf:owner/repo/model.gguf
  sterna logits ./model-folder --ids 1,2,3 --kv f32 --json
  sterna perplexity model.gguf --text-file book.txt
  sterna tokenize model.gguf "Hello world" --json

Results go to stdout, progress and errors to stderr.
Exit codes: 0 success, 1 error, 2 wrong usage, 130 interrupted.`,
		);
	program
		.command("inspect")
		.description("show what a model is and needs, reading only its headers")
		.argument("<model>", MODEL)
		.option("-c, --context <tokens>", "size of the context window to count memory for", integerOption(1))
		.addOption(new Option("--kv <format>", "how keys and values are kept").choices(["f32", "f16", "q16", "q8"]))
		.option("--tensors", "list every tensor")
		.option("--metadata", "list the file's metadata")
		.option("--json", "print everything as JSON")
		.action((model, options) => inspect(model, options, signal));
	sampling(loading(program.command("generate")))
		.description("continue a text")
		.option("-p, --prompt <text>", "the text; without it stdin is read")
		.addOption(
			new Option("--ids <ids>", "the prompt as token ids, separated by commas")
				.argParser(idsOption)
				.conflicts("prompt"),
		)
		.option("--json", "print the result as JSON when it is complete")
		.action((model, options) => generate(model, options, signal));
	sampling(loading(program.command("chat")))
		.description("talk to a model; each line of input is a message")
		.option("--system <text>", "a system message")
		.addHelpText(
			"after",
			"\nCtrl-C stops an answer; at the prompt it ends, as does Ctrl-D. /clear forgets the conversation.",
		)
		.action((model, options) => chat(model, options, signal));
	loading(program.command("logits"))
		.description("print the model's raw predictions: one row of f32 for each token")
		.requiredOption("--ids <ids>", "token ids, separated by commas", idsOption)
		.option("--json", 'print {"logits": [[…], …]}; without it the likeliest tokens of each row')
		.action((model, options) => logits(model, options, signal));
	loading(program.command("perplexity"))
		.description("how well the model predicts a text, in windows of the context's length")
		.option("--text-file <file>", "the text (UTF-8); without it stdin is read")
		.option("--json", "print JSON, with the loss of each token")
		.action((model, options) => perplexity(model, options, signal));
	loading(program.command("tokenize"))
		.description("print the token ids of a text")
		.argument("<text>", "the text")
		.option("--no-special", "leave out the tokens that the model expects around a text")
		.option("--json", 'print {"ids": […], "tokens": […]}')
		.action((model, text, options) => tokenize(model, text, options, signal));
	for (const command of [program, ...program.commands]) command.exitOverride();
	return program;
}

/** Runs the program and tells its exit code. */
async function run(argv: string[]): Promise<number> {
	const signal = interruptSignal();
	endWithReader();
	try {
		await buildProgram(signal).parseAsync(argv);
		return 0;
	} catch (error) {
		if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
		if (error instanceof SternaError && error.code === "aborted") return EXIT.interrupted;
		const message = error instanceof SternaError ? `${error.message} [${error.code}]` : String(error);
		process.stderr.write(`sterna: ${message}\n`);
		return EXIT.error;
	}
}

process.exitCode = await run(process.argv);
