// A page's own `fetch` function, used by the worker: functions cannot move, so requests and the pieces of their
// answers do, over a port. A piece is sent when it is asked for, so that nothing piles up.

/** Worker → page. */
type Ask =
	| {
			id: number;
			type: "fetch";
			url: string;
			init: { method?: string; headers: Record<string, string>; cache?: RequestCache };
	  }
	| { id: number; type: "pull" }
	| { id: number; type: "cancel" };

/** Page → worker. */
type Tell =
	| { id: number; type: "head"; status: number; url: string; headers: [string, string][]; hasBody: boolean }
	| { id: number; type: "piece"; bytes: Uint8Array }
	| { id: number; type: "end" }
	| { id: number; type: "error"; message: string };

/** Statuses whose answers have no body. */
const BODILESS = new Set([101, 204, 205, 304]);

/** Serves requests that come over a port with a `fetch` function. */
export function serveFetch(port: MessagePort, fetcher: typeof fetch): void {
	const running = new Map<
		number,
		{ controller: AbortController; reader?: ReadableStreamDefaultReader<Uint8Array> }
	>();
	const tell = (message: Tell, transfer: Transferable[] = []) => port.postMessage(message, transfer);
	const fail = (id: number, error: unknown) => {
		running.delete(id);
		tell({ id, type: "error", message: error instanceof Error ? error.message : String(error) });
	};

	async function start({ id, url, init }: Extract<Ask, { type: "fetch" }>): Promise<void> {
		const controller = new AbortController();
		running.set(id, { controller });
		try {
			const response = await fetcher(url, { ...init, signal: controller.signal });
			const reader = response.body?.getReader();
			running.set(id, { controller, reader });
			const headers = [...response.headers];
			tell({
				id,
				type: "head",
				status: response.status,
				url: response.url,
				headers,
				hasBody: reader !== undefined,
			});
			if (!reader) running.delete(id);
		} catch (error) {
			fail(id, error);
		}
	}

	async function pull(id: number): Promise<void> {
		const reader = running.get(id)?.reader;
		if (!reader) return;
		try {
			const { done, value } = await reader.read();
			if (!done) {
				const bytes = value.slice();
				tell({ id, type: "piece", bytes }, [bytes.buffer]);
				return;
			}
			running.delete(id);
			tell({ id, type: "end" });
		} catch (error) {
			fail(id, error);
		}
	}

	function cancel(id: number): void {
		const found = running.get(id);
		running.delete(id);
		found?.reader?.cancel().catch(() => undefined);
		found?.controller.abort();
	}

	port.onmessage = ({ data }: MessageEvent<Ask>) => {
		if (data.type === "fetch") start(data);
		if (data.type === "pull") pull(data.id);
		if (data.type === "cancel") cancel(data.id);
	};
}

/** What waits for messages of one request. */
type Listener = (message: Tell) => void;

/** A `fetch` function that asks over a port. */
export function proxiedFetch(port: MessagePort): typeof fetch {
	const listeners = new Map<number, Listener>();
	let lastId = 0;
	port.onmessage = ({ data }: MessageEvent<Tell>) => listeners.get(data.id)?.(data);
	const ask = (message: Ask) => port.postMessage(message);

	function bodyOf(id: number): ReadableStream<Uint8Array> {
		return new ReadableStream<Uint8Array>(
			{
				pull(controller) {
					ask({ id, type: "pull" });
					return new Promise<void>((resolve) => {
						listeners.set(id, (message) => {
							if (message.type === "piece") controller.enqueue(message.bytes);
							if (message.type === "end") controller.close();
							if (message.type === "error") controller.error(new TypeError(message.message));
							if (message.type !== "piece") listeners.delete(id);
							resolve();
						});
					});
				},
				cancel() {
					listeners.delete(id);
					ask({ id, type: "cancel" });
				},
			},
			{ highWaterMark: 0 },
		);
	}

	return (input, init = {}) => {
		const id = ++lastId;
		const { signal, method, cache } = init;
		const headers = Object.fromEntries(new Headers(init.headers));
		return new Promise<Response>((resolve, reject) => {
			const onAbort = () => {
				listeners.delete(id);
				ask({ id, type: "cancel" });
				reject(signal?.reason);
			};
			signal?.addEventListener("abort", onAbort, { once: true });
			listeners.set(id, (message) => {
				signal?.removeEventListener("abort", onAbort);
				if (message.type === "error") {
					listeners.delete(id);
					reject(new TypeError(message.message));
				}
				if (message.type !== "head") return;
				const { status, hasBody } = message;
				const body = hasBody && !BODILESS.has(status) ? bodyOf(id) : null;
				const response = new Response(body, { status, headers: message.headers });
				Object.defineProperty(response, "url", { value: message.url });
				resolve(response);
			});
			ask({ id, type: "fetch", url: String(input), init: { method, cache, headers } });
		});
	};
}
