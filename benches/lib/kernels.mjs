// The kernels' own benchmark, as a part of the whole one.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { tryRun } from "../../scripts/lib/run.mjs";

/** Runs it; gives its document, or `undefined` where it could not run (what it printed says why). */
export function measureKernels(quick) {
	const script = inRoot("benches", "kernels", "run.mjs");
	if (!existsSync(script)) return undefined;
	const folder = mkdtempSync(join(tmpdir(), "sterna-bench-"));
	const json = join(folder, "kernels.json");
	try {
		// Standard output is the report's: what the runner prints there goes to standard error.
		const ran = tryRun("node", [script, "--json", json, ...(quick ? ["--quick"] : [])], {
			stdio: ["ignore", 2, 2],
		});
		return ran ? JSON.parse(readFileSync(json, "utf8")) : undefined;
	} finally {
		rmSync(folder, { recursive: true });
	}
}
