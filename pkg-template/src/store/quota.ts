// How much the browser lets a site store.

import { QuotaExceededError } from "../errors.js";

/** Bytes that a site may still store, as far as the browser tells. */
export async function availableBytes(): Promise<number | undefined> {
	try {
		const { quota, usage } = await navigator.storage.estimate();
		return quota === undefined ? undefined : Math.max(0, quota - (usage ?? 0));
	} catch {
		return undefined;
	}
}

/** Sizes as messages give them. */
const megabytes = (bytes: number) => `${Math.ceil(bytes / 1e6)} MB`;

/** The error for a file for which there is no room. */
export function noRoom(
	name: string,
	size: number | undefined,
	available: number | undefined,
): QuotaExceededError {
	const needed = size === undefined ? "" : ` It takes ${megabytes(size)}`;
	const left =
		size === undefined || available === undefined ? "" : `; the browser allows ${megabytes(available)} more`;
	return new QuotaExceededError(
		`There is no room to store ${name}.${needed}${left}${needed && "."} Delete other models (cache.delete), or free space on the device.`,
	);
}

/** Whether an error is the browser's for a used-up quota. */
export function isQuotaError(error: unknown): boolean {
	return (error as { name?: unknown } | null)?.name === "QuotaExceededError";
}
