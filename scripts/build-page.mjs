// Builds the demo page into www/dist from the package in pkg/.
//
//   node scripts/build-page.mjs
import { pathToFileURL } from "node:url";
import { inRoot } from "./lib/paths.mjs";
import { run } from "./lib/run.mjs";

/** Builds the page and returns the folder it is in: static files that work under any path of any server. */
export async function buildPage() {
	run("tsc", ["--project", inRoot("www")]);
	run("tsc", ["--project", inRoot("www", "tsconfig.worker.json")]);
	const { build } = await import("vite");
	await build({ configFile: inRoot("www", "vite.config.mjs"), logLevel: "warn" });
	return inRoot("www", "dist");
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(await buildPage());
