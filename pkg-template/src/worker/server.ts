// The worker's side of the protocol: one engine, driven by messages.

import type { CallContext, Engine, EngineHost } from "../engine.js";
import { AbortedError, InternalError, serializeError, toSternaError } from "../errors.js";
import type { Calls, Method, Request, Response } from "./protocol.js";

/** The part of a worker's global scope that is used. */
export interface Port {
	postMessage(message: Response, transfer: Transferable[]): void;
	onmessage: ((event: MessageEvent<Request>) => void) | null;
}

type Handlers = {
	[M in Method]: (
		args: Calls[M]["args"],
		context: CallContext<Calls[M]["event"]>,
	) => Promise<Calls[M]["result"]>;
};

/** Answers the messages of a port with an engine that `host` loads. */
export function serve(port: Port, host: EngineHost): void {
	let loaded: Engine | undefined;
	const engine = () => {
		if (!loaded) throw new InternalError("The worker has no model.");
		return loaded;
	};
	const handlers: Handlers = {
		async load([source, options], context) {
			loaded = await host.load(source, options, context);
			return loaded.info;
		},
		generate: async ([prompt, options], context) => engine().generate(prompt, options, context),
		evaluate: async ([input, kind], context) => engine().evaluate(input, kind, context),
		tokenize: async (args) => engine().tokenize(...args),
		detokenize: async (args) => engine().detokenize(...args),
		applyChatTemplate: async (args) => engine().applyChatTemplate(...args),
		countTokens: async (args) => engine().countTokens(...args),
		stats: async () => engine().stats(),
	};
	const running = new Map<number, AbortController>();

	async function answer(request: Extract<Request, { type: "call" }>): Promise<void> {
		const { id, method, args } = request;
		const controller = new AbortController();
		running.set(id, controller);
		try {
			const onEvent = (event: unknown) => port.postMessage({ id, type: "event", event }, []);
			// The request's type ties its arguments to its method; a lookup by method loses that tie.
			const handle = handlers[method] as (args: unknown, context: CallContext<unknown>) => Promise<unknown>;
			const result = await handle(args, { signal: controller.signal, onEvent });
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
				running.get(data.id)?.abort(new AbortedError(data.reason));
				break;
			case "dispose":
				dispose();
				break;
		}
	};
}
