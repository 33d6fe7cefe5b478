// Serves what the benchmark's pages load: the package, the peer, the pages' own modules and the models.
import { readFileSync } from "node:fs";
import { createServer, STATUS_CODES } from "node:http";
import { basename, dirname } from "node:path";
import send from "send";
import { inRoot } from "../../scripts/lib/paths.mjs";

// Shared memory, and clocks of 5 µs, need a cross-origin isolated page.
const HEADERS = {
	"Cross-Origin-Opener-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Cache-Control": "no-store",
};

/** The package, as it is and for an engine that lacks relaxed SIMD. */
export const PACKAGE = "/sterna/";
export const STRICT_PACKAGE = "/sterna-strict/";

const FOLDERS = {
	[PACKAGE]: inRoot("pkg"),
	[STRICT_PACKAGE]: inRoot("pkg"),
	"/wllama/": inRoot("node_modules", "@wllama", "wllama", "esm"),
	"/pages/": inRoot("benches", "pages"),
};

/** The package's worker, which first hides relaxed SIMD from itself. */
const strictWorker = () =>
	readFileSync(inRoot("benches", "pages", "no-relaxed-simd.js"), "utf8") +
	readFileSync(inRoot("pkg", "worker.js"), "utf8");

/**
 * Starts the server on a free port of this machine.
 *
 * @returns `url` of an empty page; `addFile(path)`, which makes a file available and gives its address;
 * `addWasm(name, bytes)`, the same for a module; and `close()`
 */
export async function serve() {
	const files = new Map();
	const texts = new Map([
		["/", ["text/html", () => "<!doctype html><title>Benchmark</title>"]],
		[`${STRICT_PACKAGE}worker.js`, ["text/javascript", strictWorker]],
	]);
	const server = createServer((request, response) => {
		for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
		const { pathname } = new URL(request.url, "http://localhost");
		const [type, body] = texts.get(pathname) ?? [];
		if (type) return response.setHeader("Content-Type", type).end(body());
		const folder = Object.keys(FOLDERS).find((prefix) => pathname.startsWith(prefix));
		const file = files.get(pathname);
		if (!folder && !file) return response.writeHead(404).end();
		const [root, path] = folder
			? [FOLDERS[folder], pathname.slice(folder.length - 1)]
			: [dirname(file), `/${encodeURIComponent(basename(file))}`];
		return send(request, path, { root, cacheControl: false, dotfiles: "allow" })
			.on("error", ({ status = 500 }) => response.writeHead(status).end(STATUS_CODES[status]))
			.pipe(response);
	});
	await new Promise((done, fail) => {
		server.once("error", fail);
		server.listen(0, "localhost", done);
	});
	return {
		url: `http://localhost:${server.address().port}/`,
		addFile(path) {
			const address = `/models/${encodeURIComponent(basename(path))}`;
			files.set(address, path);
			return address;
		},
		addWasm(name, bytes) {
			const address = `/modules/${name}`;
			texts.set(address, ["application/wasm", () => bytes]);
			return address;
		},
		close() {
			server.close();
			server.closeAllConnections();
		},
	};
}
