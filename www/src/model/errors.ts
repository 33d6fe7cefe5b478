/** What to tell a visitor about each error of the engine, by its stable code. */
import { SternaError } from "sterna";

const ADVICE: Readonly<Record<string, string>> = {
	network:
		"Check the address and the connection. A server on another site must allow cross-origin requests (CORS).",
	unsupported_format:
		"Sterna runs ternary checkpoints as GGUF or safetensors. Try another file of the same model.",
	corrupt_file: "The file is damaged or incomplete. Download it again, or try another copy.",
	integrity_mismatch: "The file is not the one that was expected. Download it again from a source you trust.",
	quota_exceeded: "The browser has no room left for this site. Free some storage and try again.",
	out_of_memory: "Close other tabs, or choose a smaller model.",
	context_overflow:
		"The message is too long for this model's context. Shorten it or the system prompt, or choose a model with a larger context.",
	device_lost: "The graphics device went away. Load the model again.",
	unsupported_browser: "Use a current version of Chrome, Edge, Firefox or Safari.",
	invalid_argument: "Check the settings, or reset them to their defaults.",
};

/** An error as the page shows it. */
export interface ErrorText {
	message: string;
	code?: string;
	advice?: string;
}

/** What to tell when no model can be loaded from what a visitor named. */
const LOAD_ADVICE: Readonly<Record<string, string>> = {
	invalid_argument:
		"Give the address of a .gguf file or of a model's folder, or hf:owner/repo for a model on Hugging Face.",
};

/** An error of a load. */
export function explainLoad(error: unknown): ErrorText {
	const known = explain(error);
	return { ...known, advice: LOAD_ADVICE[known.code ?? ""] ?? known.advice };
}

export function explain(error: unknown): ErrorText {
	if (error instanceof SternaError)
		return { message: error.message, code: error.code, advice: ADVICE[error.code] };
	return {
		message: error instanceof Error ? error.message : String(error),
		advice: "Reload the page and try again.",
	};
}

/** Whether the model cannot answer any more after this error and has to be loaded again. */
export function isLoss(error: unknown): boolean {
	return error instanceof SternaError && (error.code === "internal" || error.code === "device_lost");
}

/** Whether the work ended because someone asked for it. */
export function isAbort(error: unknown): boolean {
	if (error instanceof SternaError) return error.code === "aborted";
	return error instanceof DOMException && error.name === "AbortError";
}
