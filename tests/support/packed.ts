// The package as a user gets it: packed, and installed from the tarball into an app of its own.

import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inRoot } from "./repo.js";

export interface App {
	folder: string;
	/** Paths in the tarball. */
	files: string[];
	/** Runs a program in the app's folder and gives what it prints. */
	run(program: string, ...args: string[]): string;
	remove(): Promise<void>;
}

/** Packs pkg/ and installs it into an empty app. */
export async function installPacked(): Promise<App> {
	const folder = await mkdtemp(join(tmpdir(), "sterna-app-"));
	const run = (program: string, ...args: string[]) =>
		execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
	const packed = JSON.parse(run("npm", "pack", "--json", "--pack-destination", folder, inRoot("pkg")));
	const [{ filename, files }] = Array.isArray(packed) ? packed : Object.values(packed);
	await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
	run("npm", "install", "--offline", "--no-audit", "--no-fund", join(folder, filename));
	return {
		folder,
		files: files.map(({ path }: { path: string }) => path),
		run,
		remove: () => rm(folder, { recursive: true, force: true }),
	};
}
