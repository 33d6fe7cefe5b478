// The engine in a worker, seen from the page: each method is a message, and its answer.

import type { CallContext, Engine, EngineHost, EngineLoadOptions, LoadContext } from "../engine.js";
import {
	AbortedError,
	abortedBy,
	createError,
	InternalError,
	NetworkError,
	type SternaError,
	throwIfAborted,
} from "../errors.js";
import type { SourceSpec } from "../files/source.js";
import type { Gate } from "../net/gate.js";
import { type CheckStored, checkHere } from "../store/check.js";
import type { Delta, ModelInfo } from "../types.js";
import { serveFetch } from "./fetch-proxy.js";
import type { Calls, Method, Request, Response } from "./protocol.js";

/** The part of `Worker` that is used. */
export type WorkerLike = Pick<
	Worker,
	"postMessage" | "terminate" | "onmessage" | "onerror" | "onmessageerror"
>;

interface Pending {
	resolve: (result: unknown) => void;
	reject: (error: SternaError) => void;
	onEvent: ((event: unknown) => void) | undefined;
}

function notLoaded(url: string): NetworkError {
	return new NetworkError(
		`The engine's worker did not start: its script could not be loaded (${url}, or what a bundler made of it). Check the connection and load the model again; if it never starts, serve worker.js beside the package's other scripts, and let the page's Content-Security-Policy allow it (worker-src).`,
		url,
	);
}

/** How long a worker may take to end in order, in milliseconds, before it is terminated. */
const DISPOSE_TIMEOUT = 2000;

function settleable() {
	let resolve = () => {};
	const promise = new Promise<void>((settle) => {
		resolve = settle;
	});
	return { promise, resolve };
}

/** Sends calls to a worker. */
class WorkerConnection {
	readonly #worker: WorkerLike;
	readonly #pending = new Map<number, Pending>();
	readonly #ended = settleable();
	#lastId = 0;
	#hasAnswered = false;
	#lost: SternaError | undefined;
	/** Called when the worker tells that the model's information has changed. */
	onInfo: ((info: ModelInfo) => void) | undefined;

	/** @param url where the worker's script is */
	constructor(worker: WorkerLike, url: string) {
		this.#worker = worker;
		worker.onmessage = ({ data }: MessageEvent<Response>) => this.#receive(data);
		worker.onerror = ({ message }) => {
			// An error without a message is not one of the running script's.
			if (!message && !this.#hasAnswered) this.close(notLoaded(url));
			else this.close(new InternalError(`The worker stopped: ${message}. Load the model again.`));
		};
		worker.onmessageerror = () =>
			this.close(
				new InternalError("The worker sent a message that could not be read. Load the model again."),
			);
	}

	async call<M extends Method>(
		method: M,
		args: Calls[M]["args"],
		{ signal, gate, onEvent }: CallContext<Calls[M]["event"]> & { gate?: Gate } = {},
	): Promise<Calls[M]["result"]> {
		throwIfAborted(signal);
		if (this.#lost) throw this.#lost;
		const id = ++this.#lastId;
		const onAbort = () => this.#send({ id, type: "abort", reason: abortedBy(signal!).message });
		const onPause = () => this.#send({ id, type: "pause", isPaused: gate!.isPaused });
		signal?.addEventListener("abort", onAbort, { once: true });
		const offGate = gate?.onChange(onPause);
		try {
			return await new Promise<Calls[M]["result"]>((resolve, reject) => {
				this.#pending.set(id, {
					resolve: resolve as Pending["resolve"],
					reject,
					onEvent: onEvent as Pending["onEvent"],
				});
				this.#send(
					{ id, type: "call", method, args } as Request,
					args.filter((arg) => arg instanceof MessagePort),
				);
				if (gate?.isPaused) onPause();
			});
		} finally {
			offGate?.();
			signal?.removeEventListener("abort", onAbort);
			this.#pending.delete(id);
		}
	}

	/** Ends the worker; what is pending and what comes later fails. */
	close(error: SternaError): void {
		this.#fail(error);
		this.#end();
	}

	/**
	 * Ends the worker in order, which takes a step of what runs at most; what is pending and what comes later
	 * fails at once. Browsers take seconds to terminate a worker whose threads sleep.
	 */
	async dispose(error: SternaError): Promise<void> {
		const isAlive = this.#lost === undefined;
		this.#fail(error);
		if (isAlive) {
			this.#send({ type: "dispose" });
			setTimeout(() => this.#end(), DISPOSE_TIMEOUT);
		}
		await this.#ended.promise;
	}

	#fail(error: SternaError): void {
		this.#lost ??= error;
		for (const { reject } of this.#pending.values()) reject(error);
	}

	#end(): void {
		this.#worker.terminate();
		this.#ended.resolve();
	}

	#send(request: Request, transfer: Transferable[] = []): void {
		this.#worker.postMessage(request, transfer);
	}

	#receive(response: Response): void {
		this.#hasAnswered = true;
		if (response.type === "disposed") {
			this.#end();
			return;
		}
		if (response.type === "info") {
			this.onInfo?.(response.info);
			return;
		}
		const pending = this.#pending.get(response.id);
		if (!pending) return;
		if (response.type === "event") pending.onEvent?.(response.event);
		if (response.type === "result") pending.resolve(response.result);
		if (response.type === "error") pending.reject(createError(response.error));
	}
}

class WorkerEngine implements Engine {
	#info: ModelInfo;
	#onInfo: ((info: ModelInfo) => void) | undefined;
	readonly #connection: WorkerConnection;

	constructor(connection: WorkerConnection, info: ModelInfo) {
		this.#connection = connection;
		this.#info = info;
		connection.onInfo = (info) => {
			this.#info = info;
			this.#onInfo?.(info);
		};
	}

	get info(): ModelInfo {
		return this.#info;
	}

	watchInfo(listener: (info: ModelInfo) => void): void {
		this.#onInfo = listener;
	}

	generate: Engine["generate"] = async (prompt, options, { signal, onEvent }) => {
		let text = "";
		const collect = (delta: Delta) => {
			text += delta.text;
			onEvent?.(delta);
		};
		try {
			return await this.#connection.call("generate", [prompt, options], { signal, onEvent: collect });
		} catch (error) {
			// The worker tells how far it came, unless it was ended with the model.
			if (!(error instanceof AbortedError) || error.partialText) throw error;
			throw new AbortedError(error.message, { cause: error.cause, partialText: text });
		}
	};

	evaluate: Engine["evaluate"] = (input, kind, context) =>
		this.#connection.call("evaluate", [input, kind], context);

	tokenize: Engine["tokenize"] = (...args) => this.#connection.call("tokenize", args);

	detokenize: Engine["detokenize"] = (...args) => this.#connection.call("detokenize", args);

	applyChatTemplate: Engine["applyChatTemplate"] = (...args) =>
		this.#connection.call("applyChatTemplate", args);

	countTokens: Engine["countTokens"] = (...args) => this.#connection.call("countTokens", args);

	stats: Engine["stats"] = () => this.#connection.call("stats", []);

	async dispose(): Promise<void> {
		await this.#connection.dispose(new AbortedError("The model was disposed of."));
	}
}

/**
 * Loads engines into workers, one each: disposing of a model gives all its memory back.
 *
 * @param url where the workers' script is, for telling when it cannot be loaded
 */
export function workerHost(createWorker: () => WorkerLike, url: string): EngineHost {
	/** Starts a worker and calls it with what is to be loaded. */
	async function begin<M extends "load" | "estimate">(
		method: M,
		source: SourceSpec,
		options: EngineLoadOptions,
		{ fetch, ...context }: LoadContext,
	) {
		throwIfAborted(context.signal);
		const connection = new WorkerConnection(createWorker(), url);
		try {
			const result = await connection.call(method, [source, options, fetch && fetchPort(fetch)], context);
			return { connection, result };
		} catch (error) {
			connection.close(error as SternaError);
			throw error;
		}
	}
	return {
		async load(source, options, context) {
			const { connection, result } = await begin("load", source, options, context);
			return new WorkerEngine(connection, result);
		},
		async estimate(source, options, { signal, fetch }) {
			const { connection, result } = await begin("estimate", source, options, { signal, fetch });
			connection.close(new AbortedError("The estimate is done."));
			return result;
		},
	};
}

/**
 * Checks stored files in a worker of their own: the page goes on meanwhile, and only workers read files at the disk's
 * speed. Where the page may have no workers it checks them itself.
 */
export function workerCheck(createWorker: () => WorkerLike, url: string): CheckStored {
	return async (files, context) => {
		throwIfAborted(context.signal);
		let connection: WorkerConnection;
		try {
			connection = new WorkerConnection(createWorker(), url);
		} catch {
			return checkHere(files, context);
		}
		try {
			return await connection.call("checkStored", [files], context);
		} catch (error) {
			if (error instanceof NetworkError) return await checkHere(files, context);
			throw error;
		} finally {
			connection.close(new AbortedError("The check is done."));
		}
	};
}

/** A port over which a worker can use a `fetch` function of this thread. */
function fetchPort(fetcher: typeof fetch): MessagePort {
	const { port1, port2 } = new MessageChannel();
	serveFetch(port1, fetcher);
	return port2;
}
