// Starts a worker from one of the package's scripts, also where the package lies on another origin.

/** Browsers refuse worker scripts of other origins, such as a CDN; a script of this page may import them. */
function foreignWorker(url: string): Worker {
	const script = new Blob([`import ${JSON.stringify(url)};`], { type: "text/javascript" });
	return new Worker(URL.createObjectURL(script), { type: "module", name: "sterna" });
}

/** The address of `script`, which lies beside `base`. */
export const scriptUrl = (script: string, base: string): string => base.replace(/[^/]*$/, script);

/**
 * A worker that runs `script`, which lies beside `base`.
 *
 * @param create starts it where it is of this page's origin
 */
export function moduleWorker(script: string, base: string, create: () => Worker): Worker {
	const { origin, protocol } = new URL(base);
	const isForeign = protocol.startsWith("http") && origin !== globalThis.location?.origin;
	return isForeign ? foreignWorker(scriptUrl(script, base)) : create();
}
