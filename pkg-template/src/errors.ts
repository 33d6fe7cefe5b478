// The errors that the package throws: one class a code, so that both `error.code` and `instanceof` work,
// and the way an error takes through a worker's message channel and out of the wasm module.

/** The stable, machine-readable names of what can go wrong. */
export type SternaErrorCode =
	| "unsupported_format"
	| "corrupt_file"
	| "integrity_mismatch"
	| "network"
	| "quota_exceeded"
	| "out_of_memory"
	| "device_lost"
	| "context_overflow"
	| "aborted"
	| "invalid_argument"
	| "unsupported_browser"
	| "internal";

/**
 * The base of every error that Sterna throws. `code` is stable; `message` says what is wrong and what to do
 * about it.
 */
export class SternaError extends Error {
	override name = "SternaError";
	/** The stable name of the kind of error. */
	readonly code: SternaErrorCode;

	constructor(code: SternaErrorCode, message: string, options?: ErrorOptions) {
		super(message, options);
		this.code = code;
	}
}

/** The file is intact but of a kind that Sterna does not run: its architecture, encoding or version. */
export class UnsupportedFormatError extends SternaError {
	override name = "UnsupportedFormatError";
	constructor(message: string, options?: ErrorOptions) {
		super("unsupported_format", message, options);
	}
}

/** The file contradicts itself or its format: it is truncated, sizes lie, tensors are missing. */
export class CorruptFileError extends SternaError {
	override name = "CorruptFileError";
	constructor(message: string, options?: ErrorOptions) {
		super("corrupt_file", message, options);
	}
}

/** The file's digest is not the expected one. */
export class IntegrityMismatchError extends SternaError {
	override name = "IntegrityMismatchError";
	constructor(message: string, options?: ErrorOptions) {
		super("integrity_mismatch", message, options);
	}
}

/** A download failed: not found, forbidden by CORS, cut off, or something else than a model was served. */
export class NetworkError extends SternaError {
	override name = "NetworkError";
	/** The address that failed. */
	readonly url: string;
	/** The HTTP status, where the server answered. */
	readonly status: number | undefined;

	constructor(message: string, url: string, options?: ErrorOptions & { status?: number }) {
		super("network", message, options);
		this.url = url;
		this.status = options?.status;
	}
}

/** The browser's storage quota is used up. */
export class QuotaExceededError extends SternaError {
	override name = "QuotaExceededError";
	constructor(message: string, options?: ErrorOptions) {
		super("quota_exceeded", message, options);
	}
}

/** Memory could not be allocated. */
export class OutOfMemoryError extends SternaError {
	override name = "OutOfMemoryError";
	constructor(message: string, options?: ErrorOptions) {
		super("out_of_memory", message, options);
	}
}

/** The device that computes was taken away. */
export class DeviceLostError extends SternaError {
	override name = "DeviceLostError";
	constructor(message: string, options?: ErrorOptions) {
		super("device_lost", message, options);
	}
}

/** The prompt, or the prompt and the requested tokens, do not fit the context window. */
export class ContextOverflowError extends SternaError {
	override name = "ContextOverflowError";
	constructor(message: string, options?: ErrorOptions) {
		super("context_overflow", message, options);
	}
}

/**
 * The call was aborted: by its `AbortSignal`, by {@link ChatStream.abort}, by leaving a `for await` loop, or
 * because the model was disposed of. `name` is `"AbortError"`, as the platform's own.
 */
export class AbortedError extends SternaError {
	override name = "AbortError";
	/** The text that had been generated; `""` for calls that generate none. */
	readonly partialText: string;

	constructor(message: string, options?: ErrorOptions & { partialText?: string }) {
		super("aborted", message, options);
		this.partialText = options?.partialText ?? "";
	}
}

/** A parameter of the call is wrong. */
export class InvalidArgumentError extends SternaError {
	override name = "InvalidArgumentError";
	constructor(message: string, options?: ErrorOptions) {
		super("invalid_argument", message, options);
	}
}

/** The browser, or the runtime, lacks something that was asked for or that Sterna cannot do without. */
export class UnsupportedBrowserError extends SternaError {
	override name = "UnsupportedBrowserError";
	constructor(message: string, options?: ErrorOptions) {
		super("unsupported_browser", message, options);
	}
}

/** A fault of Sterna itself. The model is lost; load it again, and please report the message. */
export class InternalError extends SternaError {
	override name = "InternalError";
	constructor(message: string, options?: ErrorOptions) {
		super("internal", message, options);
	}
}

/** An error as plain data, for a worker's message channel. */
export interface ErrorData {
	code: SternaErrorCode;
	message: string;
	partialText?: string;
	url?: string;
	status?: number;
}

/** @internal */
export function serializeError(error: SternaError): ErrorData {
	const data: ErrorData = { code: error.code, message: error.message };
	if (error instanceof AbortedError) data.partialText = error.partialText;
	if (error instanceof NetworkError) Object.assign(data, { url: error.url, status: error.status });
	return data;
}

/** @internal */
export function createError(data: ErrorData, options?: ErrorOptions): SternaError {
	const { code, message } = data;
	switch (code) {
		case "unsupported_format":
			return new UnsupportedFormatError(message, options);
		case "corrupt_file":
			return new CorruptFileError(message, options);
		case "integrity_mismatch":
			return new IntegrityMismatchError(message, options);
		case "network":
			return new NetworkError(message, data.url ?? "", { ...options, status: data.status });
		case "quota_exceeded":
			return new QuotaExceededError(message, options);
		case "out_of_memory":
			return new OutOfMemoryError(message, options);
		case "device_lost":
			return new DeviceLostError(message, options);
		case "context_overflow":
			return new ContextOverflowError(message, options);
		case "aborted":
			return new AbortedError(message, { ...options, partialText: data.partialText });
		case "invalid_argument":
			return new InvalidArgumentError(message, options);
		case "unsupported_browser":
			return new UnsupportedBrowserError(message, options);
		case "internal":
			return new InternalError(message, options);
	}
}

const WASM_CODES: readonly string[] = [
	"unsupported_format",
	"corrupt_file",
	"out_of_memory",
	"device_lost",
	"unsupported_browser",
	"context_overflow",
	"invalid_argument",
] satisfies SternaErrorCode[];

/**
 * Whether an error is a trap of the wasm module, after which the module's state is unknown. When the stack is
 * used up, engines throw an error of their own in place of a `RuntimeError`.
 *
 * @internal
 */
export function isTrap(error: unknown): boolean {
	if (error instanceof WebAssembly.RuntimeError) return true;
	if (error instanceof SternaError) return false;
	return error instanceof Error && /call stack|too much recursion/i.test(error.message);
}

/**
 * Makes a {@link SternaError} of whatever was thrown: the wasm module's errors by their code, failed
 * allocations, and the traps that follow a fault in the engine.
 *
 * @internal
 */
export function toSternaError(error: unknown): SternaError {
	if (error instanceof SternaError) return error;
	const message = error instanceof Error ? error.message : String(error);
	const code = (error as { code?: unknown } | null)?.code;
	if (typeof code === "string" && WASM_CODES.includes(code)) {
		return createError({ code: code as SternaErrorCode, message }, { cause: error });
	}
	if (error instanceof RangeError && /alloc|memory|length|buffer/i.test(message)) {
		return new OutOfMemoryError(
			`The browser could not provide the memory for this (${message}). Use a smaller model or context, or close other tabs.`,
			{ cause: error },
		);
	}
	const fault = isTrap(error) ? "The engine stopped" : "Something unexpected failed";
	return new InternalError(
		`${fault}: ${message}. Load the model again; if it happens again, please report it.`,
		{
			cause: error,
		},
	);
}

/**
 * Throws an {@link AbortedError} when the signal is aborted.
 *
 * @internal
 */
export function throwIfAborted(signal: AbortSignal | undefined, partialText?: string): void {
	if (signal?.aborted) throw abortedBy(signal, partialText);
}

/**
 * The error of a call whose signal is aborted.
 *
 * @internal
 */
export function abortedBy(signal: AbortSignal, partialText?: string): AbortedError {
	const { reason } = signal;
	if (reason instanceof AbortedError && !partialText) return reason;
	const why =
		typeof reason === "string" ? reason : reason instanceof AbortedError ? reason.message : undefined;
	return new AbortedError(why ?? "The call was aborted.", { cause: reason, partialText });
}
