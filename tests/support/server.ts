// A web server on this machine that serves files from memory, and misbehaves where it is told to.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** How one path answers. */
export interface Route {
	body?: Uint8Array | string;
	status?: number;
	headers?: Record<string, string>;
	/** Ends the connection after this many bytes of the body. */
	cutAfter?: number;
	/** Sends pieces of this many bytes, one each `delay` milliseconds. */
	slow?: { piece: number; delay: number };
	/** Sends no Content-Length. */
	chunked?: boolean;
}

export interface TestServer {
	origin: string;
	routes: Map<string, Route>;
	/** Paths that were asked for, in order, with their method. */
	requests: string[];
	/** Connections that ended before their answer was complete. */
	aborted: number;
	close(): Promise<void>;
}

async function send(response: ServerResponse, route: Route, isHead: boolean): Promise<void> {
	const body = typeof route.body === "string" ? Buffer.from(route.body) : (route.body ?? new Uint8Array());
	const length: Record<string, string> = route.chunked ? {} : { "Content-Length": String(body.length) };
	response.writeHead(route.status ?? 200, { ...length, ...route.headers });
	if (isHead) {
		response.end();
		return;
	}
	if (route.cutAfter !== undefined) {
		response.write(body.subarray(0, route.cutAfter), () => response.destroy());
		return;
	}
	if (!route.slow) {
		response.end(body);
		return;
	}
	for (let start = 0; start < body.length && !response.destroyed; start += route.slow.piece) {
		response.write(body.subarray(start, start + route.slow.piece));
		await new Promise((resolve) => setTimeout(resolve, route.slow?.delay));
	}
	response.end();
}

/** Starts a server; `fallback` answers paths without a route. */
export async function startServer(
	fallback: (request: IncomingMessage, path: string) => Promise<Route | undefined> = async () => undefined,
): Promise<TestServer> {
	const routes = new Map<string, Route>();
	const requests: string[] = [];
	const server: Server = createServer(async (request, response) => {
		const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
		requests.push(`${request.method} ${path}`);
		response.on("close", () => {
			if (!response.writableFinished) result.aborted += 1;
		});
		const route = routes.get(path) ?? (await fallback(request, path)) ?? { status: 404, body: "not found" };
		await send(response, route, request.method === "HEAD");
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const result: TestServer = {
		origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		routes,
		requests,
		aborted: 0,
		async close() {
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
	return result;
}
