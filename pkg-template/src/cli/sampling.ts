// The sampling options of a command.

import type { GenerationOptions } from "../types.js";

/** What the command line calls them is what the package calls them, but for the loading options among them. */
export type SamplingOptions = Pick<
	GenerationOptions,
	"maxTokens" | "temperature" | "topK" | "topP" | "minP" | "repetitionPenalty" | "seed" | "ignoreEos"
> & { stop?: string[] };

/** Picks the sampling options out of a command's options. */
export function samplingOf(options: SamplingOptions): SamplingOptions {
	const { maxTokens, temperature, topK, topP, minP, repetitionPenalty, seed, stop, ignoreEos } = options;
	return { maxTokens, temperature, topK, topP, minP, repetitionPenalty, seed, stop, ignoreEos };
}
