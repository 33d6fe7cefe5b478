// The worker's side of the protocol: one engine, driven by messages.

import type { CallContext, Engine, EngineHost } from "../engine.js";
import { AbortedError, InternalError, serializeError, toSternaError } from "../errors.js";
import { Gate } from "../net/gate.js";
import { checkHere } from "../store/check.js";
import { proxiedFetch } from "./fetch-proxy.js";
import type { Calls, Method, Request, Response } from "./protocol.js";

/** The part of a worker's global scope that is used. */
export interface Port {
	postMessage(message: Response, transfer: Transferable[]): void;
	onmessage: ((event: MessageEvent<Request>) => void) | null;
}

/** A call as handlers see it: any may be paused, and a load is. */
type Context<Event> = CallContext<Event> & { gate: Gate };

type Handlers = {
	[M in Method]: (args: Calls[M]["args"], context: Context<Calls[M]["event"]>) => Promise<Calls[M]["result"]>;
};

/** The page's `fetch`, where it gave a port of one. */
const fetchOver = (port: MessagePort | undefined) => port && proxiedFetch(port);

/** Answers the messages of a port with an engine that `host` loads. */
export function serve(port: Port, host: EngineHost): void {
	let loaded: Engine | undefined;
	const engine = () => {
		if (!loaded) throw new InternalError("The worker has no model.");
		return loaded;
	};
	const handlers: Handlers = {
		async load([source, options, fetchPort], context) {
			loaded = await host.load(source, options, { ...context, fetch: fetchOver(fetchPort) });
			loaded.watchInfo((info) => port.postMessage({ type: "info", info }, []));
			return loaded.info;
		},
		estimate: ([source, options, port], { signal }) =>
			host.estimate(source, options, { signal, fetch: fetchOver(port) }),
		generate: async ([prompt, options], context) => engine().generate(prompt, options, context),
		evaluate: async ([input, kind], context) => engine().evaluate(input, kind, context),
		tokenize: async (args) => engine().tokenize(...args),
		detokenize: async (args) => engine().detokenize(...args),
		applyChatTemplate: async (args) => engine().applyChatTemplate(...args),
		countTokens: async (args) => engine().countTokens(...args),
		stats: async () => engine().stats(),
		checkStored: ([files], context) => checkHere(files, context),
	};
	const running = new Map<number, { controller: AbortController; gate: Gate }>();

	async function answer(request: Extract<Request, { type: "call" }>): Promise<void> {
		const { id, method, args } = request;
		const controller = new AbortController();
		const gate = new Gate();
		running.set(id, { controller, gate });
		try {
			const onEvent = (event: unknown) => port.postMessage({ id, type: "event", event }, []);
			// The request's type ties its arguments to its method; a lookup by method loses that tie.
			const handle = handlers[method] as (args: unknown, context: Context<unknown>) => Promise<unknown>;
			const result = await handle(args, { signal: controller.signal, gate, onEvent });
			const transfer = result instanceof Float32Array ? [result.buffer] : [];
			port.postMessage({ id, type: "result", result }, transfer);
		} catch (error) {
			port.postMessage({ id, type: "error", error: serializeError(toSternaError(error)) }, []);
		} finally {
			running.delete(id);
		}
	}

	/** Frees the model, which also ends its threads in order. */
	async function dispose(): Promise<void> {
		await loaded?.dispose();
		port.postMessage({ type: "disposed" }, []);
	}

	port.onmessage = ({ data }) => {
		switch (data.type) {
			case "call":
				answer(data);
				break;
			case "abort":
				running.get(data.id)?.controller.abort(new AbortedError(data.reason));
				break;
			case "pause":
				if (data.isPaused) running.get(data.id)?.gate.pause();
				else running.get(data.id)?.gate.resume();
				break;
			case "dispose":
				dispose();
				break;
		}
	};
}
