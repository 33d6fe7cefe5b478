// A web server on this machine that serves files from memory, and misbehaves where it is told to.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";

/** How one path answers. */
export interface Route {
	body?: Uint8Array | string;
	status?: number;
	headers?: Record<string, string>;
	/** Ends the connection after this many bytes of the answer's body. */
	cutAfter?: number;
	/** Sends nothing any more after this many bytes of the answer's body, and keeps the connection. */
	stallAfter?: number;
	/** Sends pieces of this many bytes, one each `delay` milliseconds. */
	slow?: { piece: number; delay: number };
	/** Sends no Content-Length. */
	chunked?: boolean;
	/** Gives parts of the file; without it a range is answered with the whole file. */
	ranges?: boolean;
	/** Compresses the body, as some servers do for everything. */
	gzip?: boolean;
	/** Sends another Content-Length than the body's. */
	claimedLength?: number;
	/** Does not answer at all. */
	silent?: boolean;
}

/** A request as a route sees it. */
export interface Asked {
	method: string;
	path: string;
	headers: IncomingMessage["headers"];
	/** How many requests with this method for this path came before. */
	earlier: number;
}

/** How a path answers: always the same, or by what is asked. */
export type RouteOrRule = Route | ((asked: Asked) => Route);

export interface TestServer {
	origin: string;
	routes: Map<string, RouteOrRule>;
	/** Paths that were asked for, in order, with their method and, where there was one, their range. */
	requests: string[];
	/** Connections that ended before their answer was complete. */
	aborted: number;
	/** Bytes of bodies that were sent. */
	sentBytes: number;
	/** Forgets all routes and requests. */
	reset(): void;
	close(): Promise<void>;
}

/** The part of the body that a range asks for. */
function slice(
	body: Uint8Array,
	range: string | undefined,
): { start: number; end: number } | "beyond" | undefined {
	const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
	if (from === undefined) return undefined;
	const start = Number(from);
	if (start >= body.length) return "beyond";
	return { start, end: to ? Math.min(Number(to) + 1, body.length) : body.length };
}

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Starts a server, on any port where `port` is 0; `fallback` answers paths without a route. */
export async function startServer(
	fallback: (request: IncomingMessage, path: string) => Promise<Route | undefined> = async () => undefined,
	port = 0,
): Promise<TestServer> {
	const routes = new Map<string, RouteOrRule>();
	const requests: string[] = [];
	const counts = new Map<string, number>();

	async function send(request: IncomingMessage, response: ServerResponse, route: Route): Promise<void> {
		if (route.silent) return;
		const plain = typeof route.body === "string" ? Buffer.from(route.body) : (route.body ?? new Uint8Array());
		const whole = route.gzip ? gzipSync(plain) : plain;
		const givesRanges = route.ranges && !route.gzip && route.status === undefined;
		const part = givesRanges ? slice(whole, request.headers.range) : undefined;
		const headers: Record<string, string> = { ...route.headers };
		if (route.gzip) headers["Content-Encoding"] = "gzip";
		if (route.ranges) headers["Accept-Ranges"] = "bytes";
		if (part === "beyond") {
			response.writeHead(416, { ...headers, "Content-Range": `bytes */${whole.length}` }).end();
			return;
		}
		const body = part ? whole.subarray(part.start, part.end) : whole;
		if (part) headers["Content-Range"] = `bytes ${part.start}-${part.end - 1}/${whole.length}`;
		if (!route.chunked) headers["Content-Length"] = String(route.claimedLength ?? body.length);
		response.writeHead(part ? 206 : (route.status ?? 200), headers);
		if (request.method === "HEAD") {
			response.end();
			return;
		}
		const limit = Math.min(route.cutAfter ?? body.length, route.stallAfter ?? body.length);
		const { piece, delay } = route.slow ?? { piece: 1 << 18, delay: 0 };
		for (let start = 0; start < limit && !response.destroyed; start += piece) {
			const bytes = body.subarray(start, Math.min(start + piece, limit));
			result.sentBytes += bytes.length;
			const isFull = !response.write(bytes);
			if (delay > 0) await wait(delay);
			else if (isFull)
				await Promise.race([new Promise((resolve) => response.once("drain", resolve)), wait(1000)]);
		}
		// What was sent has to arrive before the connection is cut.
		if (limit < body.length && !response.destroyed) {
			await new Promise((resolve) => response.write("", resolve));
			await wait(50);
		}
		if (route.stallAfter !== undefined && limit < body.length) return;
		if (route.cutAfter !== undefined && limit < body.length) response.destroy();
		else if (route.claimedLength !== undefined && route.claimedLength > body.length) response.destroy();
		else response.end();
	}

	const server: Server = createServer(async (request, response) => {
		const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
		const { method = "GET", headers } = request;
		const range = headers.range === undefined ? "" : ` ${headers.range}`;
		requests.push(`${method} ${path}${range}`);
		const earlier = counts.get(`${method} ${path}`) ?? 0;
		counts.set(`${method} ${path}`, earlier + 1);
		response.on("close", () => {
			if (!response.writableFinished) result.aborted += 1;
		});
		const found = routes.get(path);
		const route = typeof found === "function" ? found({ method, path, headers, earlier }) : found;
		const chosen = route ?? (await fallback(request, path)) ?? { status: 404, body: "not found" };
		await send(request, response, chosen);
	});
	// A claimed length that is not the body's is the test's wish.
	server.on("connection", (socket) => socket.on("error", () => undefined));
	await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
	const result: TestServer = {
		origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		routes,
		requests,
		aborted: 0,
		sentBytes: 0,
		reset() {
			for (const kept of [routes, counts]) kept.clear();
			requests.length = 0;
			Object.assign(result, { aborted: 0, sentBytes: 0 });
		},
		async close() {
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
	return result;
}
