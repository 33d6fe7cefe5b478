// Chromium, and pages that are served from this machine: cross-origin isolated, with models beside them.

import { readFile, stat } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { type Route, startServer, type TestServer } from "./server.js";

const TYPES: Record<string, string> = {
	".html": "text/html",
	".js": "text/javascript",
	".css": "text/css",
	".json": "application/json",
	".svg": "image/svg+xml",
	".wasm": "application/wasm",
};

const ISOLATION = {
	"Cross-Origin-Opener-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
};

async function fileRoute(path: string, headers: Record<string, string>): Promise<Route | undefined> {
	const found = await stat(path).catch(() => undefined);
	if (!found) return undefined;
	const file = found.isDirectory() ? join(path, "index.html") : path;
	const body = await readFile(file).catch(() => undefined);
	const type = TYPES[extname(file)] ?? "application/octet-stream";
	return body && { body, headers: { "Content-Type": type, ...headers } };
}

/** Serves folders: the longest prefix of the path names the folder. */
export function serveFolders(folders: Record<string, string>, { isolated = true } = {}): Promise<TestServer> {
	const prefixes = Object.keys(folders).sort((a, b) => b.length - a.length);
	return startServer(async (_, path) => {
		const prefix = prefixes.find((start) => path.startsWith(start));
		if (prefix === undefined) return undefined;
		const rest = normalize(path.slice(prefix.length));
		return rest.startsWith("..")
			? undefined
			: fileRoute(join(folders[prefix]!, rest), isolated ? ISOLATION : {});
	});
}

/** How browsers are started: the one that the test runner found. */
export const LAUNCH = {
	executablePath: process.env.CHROME,
	args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"],
};

/** Starts the browser, with further options of its command line. */
export function launch(options: string[] = []): Promise<Browser> {
	return chromium.launch({ ...LAUNCH, args: [...LAUNCH.args, ...options] });
}

/** Opens a page, which is ready when its script has set `window.sterna`; errors that it does not catch fail it. */
export async function openPage(browser: Browser, url: string): Promise<{ page: Page; errors: string[] }> {
	const page = await browser.newPage();
	const errors: string[] = [];
	page.on("pageerror", (error) => errors.push(String(error)));
	await page.goto(url);
	await page.waitForFunction("window.sterna !== undefined");
	return { page, errors };
}
