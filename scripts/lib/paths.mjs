// Where things are: the repository, the tool cache, and the environment that every build step runs in.
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root folder. */
export const root = fileURLToPath(new URL("../..", import.meta.url));

/** A path inside the repository. */
export const inRoot = (...parts) => join(root, ...parts);

/** Tools and downloads that outlive a clone. `STERNA_CACHE` moves it. */
export const cacheDir = resolve(process.env.STERNA_CACHE ?? join(homedir(), ".cache", "sterna"));

/** Where `cargo install` puts the pinned command-line tools. */
export const toolsDir = join(cacheDir, "tools");

/** Cargo's build folder: the caller's choice, a folder shared by CI runs, or `target/`. */
export const targetDir = resolve(
	root,
	process.env.CARGO_TARGET_DIR ?? (process.env.CI === "true" ? join(cacheDir, "target") : "target"),
);

/** The environment of child processes: cached and local tools come first on the path. */
export const toolEnv = {
	...process.env,
	CARGO_TARGET_DIR: targetDir,
	PATH: [join(toolsDir, "bin"), inRoot("node_modules", ".bin"), process.env.PATH].join(delimiter),
};
