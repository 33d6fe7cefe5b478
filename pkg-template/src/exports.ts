// What both entries of the package export beside `loadModel`.

export type { Cache } from "./cache.js";
export { capabilities } from "./capabilities.js";
export {
	AbortedError,
	ContextOverflowError,
	CorruptFileError,
	DeviceLostError,
	IntegrityMismatchError,
	InternalError,
	InvalidArgumentError,
	NetworkError,
	OutOfMemoryError,
	QuotaExceededError,
	SternaError,
	type SternaErrorCode,
	UnsupportedBrowserError,
	UnsupportedFormatError,
} from "./errors.js";
export type { Model } from "./model.js";
export type { ModelLoad } from "./model-load.js";
export type { ChatStream } from "./stream.js";
export type * from "./types.js";

/** The package's version. */
export const version: string = STERNA_VERSION;
