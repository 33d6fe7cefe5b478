// A static file server whose pages are cross-origin isolated, so that the engine may use shared memory.
// Byte ranges, conditional requests and content types are those of the `send` package.
//
//   node scripts/serve.mjs [FOLDER] [PORT]

import { createServer, STATUS_CODES } from "node:http";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import send from "send";

const HEADERS = {
	"Cross-Origin-Opener-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Cross-Origin-Resource-Policy": "cross-origin",
	"X-Content-Type-Options": "nosniff",
	"Cache-Control": "no-cache",
};
const PORTS_TO_TRY = 20;

/**
 * Serves `folder` on this machine only.
 * @param {string} folder
 * @param {{ port?: number, exact?: boolean }} [options] `port` 0 takes any free one; unless `exact`, the next free one above it is taken
 * @returns {Promise<{ url: string, close: () => Promise<void> }>}
 */
export async function serve(folder, { port = 8080, exact = port === 0 } = {}) {
	const root = resolve(folder);
	const server = createServer((request, response) => answer(root, request, response));
	await listen(server, port, exact ? 1 : PORTS_TO_TRY);
	const close = () => {
		const closed = new Promise((done) => server.close(done));
		server.closeAllConnections();
		return closed;
	};
	return { url: `http://localhost:${server.address().port}/`, close };
}

function answer(root, request, response) {
	for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
	if (request.method !== "GET" && request.method !== "HEAD") {
		response.writeHead(405, { Allow: "GET, HEAD" }).end();
		return;
	}
	const { pathname } = new URL(request.url, "http://localhost");
	send(request, pathname, { root, cacheControl: false, dotfiles: "ignore" })
		.on("error", ({ status = 500, headers }) => {
			response.writeHead(status, { ...headers, "Content-Type": "text/plain" }).end(STATUS_CODES[status]);
		})
		.pipe(response);
}

async function listen(server, first, tries) {
	for (let port = first; ; port += 1) {
		try {
			await new Promise((done, fail) => {
				server.once("error", fail);
				server.listen(port, "localhost", () => {
					server.off("error", fail);
					done();
				});
			});
			return;
		} catch (error) {
			if (error.code !== "EADDRINUSE" || port + 1 >= first + tries) throw error;
		}
	}
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const [folder = ".", port] = process.argv.slice(2);
	const { url } = await serve(folder, { port: port ? Number(port) : undefined });
	console.log(`${resolve(folder)} at ${url}`);
}
