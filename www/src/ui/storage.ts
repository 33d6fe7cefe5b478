/** localStorage that may be missing, full or forbidden: what the page keeps there is a convenience. */

/** The stored JSON value, or `undefined` where there is none to be had. */
export function readStored(key: string): unknown {
	try {
		const text = localStorage.getItem(key);
		return text === null ? undefined : JSON.parse(text);
	} catch {
		return undefined;
	}
}

/** Stores a JSON value; returns whether the browser kept it. */
export function writeStored(key: string, value: unknown): boolean {
	try {
		localStorage.setItem(key, JSON.stringify(value));
		return true;
	} catch {
		return false;
	}
}
