// Runs child processes for the scripts: output goes straight to the terminal, a failure ends the script.
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { root, toolEnv } from "./paths.mjs";

/** Prints a heading that separates the steps in a long log. */
export function step(title) {
	console.log(`\n── ${title}`);
}

/** Ends the script with a message for a person; never a stack trace. */
export function fail(message) {
	console.error(`\nerror: ${message}`);
	process.exit(1);
}

/** Runs a command in the repository and returns whether it succeeded. */
export function tryRun(command, args, options = {}) {
	const { env, ...rest } = options;
	const result = spawnSync(command, args, {
		cwd: root,
		stdio: ["ignore", "inherit", "inherit"],
		env: { ...toolEnv, ...env },
		...rest,
	});
	if (result.error) fail(`cannot run ${command}: ${result.error.message}`);
	return result.status === 0;
}

/** Runs a command in the repository; the script ends when it fails. */
export function run(command, args, options = {}) {
	if (!tryRun(command, args, options)) fail(`${command} ${args.join(" ")} failed`);
}

/** What a command prints on stdout, or `undefined` when it is missing or fails. */
export function capture(command, args, options = {}) {
	const result = spawnSync(command, args, { cwd: root, encoding: "utf8", env: toolEnv, ...options });
	return result.status === 0 ? result.stdout : undefined;
}

/** The full path of a program, or `undefined` when it is not installed. */
export function which(program) {
	for (const folder of toolEnv.PATH.split(delimiter)) {
		const path = join(folder, program);
		try {
			accessSync(path, constants.X_OK);
			return path;
		} catch {
			// Not in this folder: look in the next one.
		}
	}
	return undefined;
}
