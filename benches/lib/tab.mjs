// A page in a browser of its own, so that its CPU time and memory are nobody else's.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { findChromium } from "../../scripts/lib/browser.mjs";
import { fail } from "../../scripts/lib/run.mjs";
import { countsProcesses, cpuMilliseconds, residentBytes } from "./processes.mjs";

const MEMORY_SAMPLE_MS = 50;

/** What an error from a page says, without where it was raised. */
export const firstLine = (error) => error.message.split("\n")[0].replace(/^page\.evaluate: /, "");

/** Starts a browser; with a profile it keeps what sites store on the disk, as people's browsers do. */
async function startBrowser(options, hasProfile) {
	if (!hasProfile) {
		const browser = await chromium.launch(options);
		return { browser, page: await browser.newPage(), close: () => browser.close() };
	}
	const profile = await mkdtemp(join(tmpdir(), "sterna-bench-"));
	const context = await chromium.launchPersistentContext(profile, options);
	return {
		browser: context.browser(),
		page: await context.newPage(),
		async close() {
			await context.close();
			await rm(profile, { recursive: true, force: true });
		},
	};
}

/**
 * Opens the page `module` of `benches/pages/`, whose exports `call` then calls.
 *
 * @param server what `serve()` gave
 * @param flags `jsFlags` for V8, in one string, and `browserFlags` for Chromium; `hasProfile`: what is
 * stored lies on the disk, until the tab is closed
 */
export async function openTab(server, module, { jsFlags = "", browserFlags = [], hasProfile } = {}) {
	const executablePath = findChromium();
	if (!executablePath)
		fail("Chromium is missing: `node scripts/setup.mjs` installs it, CHROME names another.");
	const args = ["--no-sandbox", ...(jsFlags ? [`--js-flags=${jsFlags}`] : []), ...browserFlags];
	const { browser, page, close } = await startBrowser({ executablePath, args }, hasProfile);
	page.setDefaultTimeout(0);
	await page.goto(server.url);
	await page.evaluate(async (url) => {
		globalThis.bench = await import(url);
	}, `/pages/${module}.mjs`);
	const devtools = await browser.newBrowserCDPSession();

	// A GPU that the processor plays computes in a process of its own.
	const computing = browserFlags.length ? ["renderer", "GPU"] : ["renderer"];
	const processes = async () => {
		const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
		return processInfo.filter(({ type }) => computing.includes(type)).map(({ id }) => id);
	};
	const call = (name, argument) =>
		page.evaluate(([name, argument]) => globalThis.bench[name](argument), [name, argument]);

	return {
		browserVersion: browser.version(),
		call,
		/** Calls, and adds to the result the CPU time in ms; `undefined` where the system does not tell. */
		async callTimed(name, argument) {
			if (!countsProcesses) return { ...(await call(name, argument)), cpuMs: undefined };
			const pids = await processes();
			const before = cpuMilliseconds(pids);
			const result = await call(name, argument);
			return { ...result, cpuMs: cpuMilliseconds(pids) - before };
		},
		/** Calls, and adds to the result the most memory that the tab gained meanwhile. */
		async callWatched(name, argument) {
			if (!countsProcesses) return { ...(await call(name, argument)), peakBytes: undefined };
			const pids = await processes();
			const before = residentBytes(pids);
			let peak = before;
			const sample = () => {
				peak = Math.max(peak, residentBytes(pids));
			};
			const sampler = setInterval(sample, MEMORY_SAMPLE_MS);
			try {
				const result = await call(name, argument);
				sample();
				return { ...result, peakBytes: peak - before };
			} finally {
				clearInterval(sampler);
			}
		},
		close,
	};
}
