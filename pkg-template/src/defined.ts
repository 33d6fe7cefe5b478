// The wasm module tells "left out" from "undefined": what is undefined has to be left out.

/** The object without its undefined properties. */
export function defined<T extends object>(object: T): T {
	return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
