// Cross-origin isolation, and with it threads, on servers whose response headers cannot be set: a service worker
// adds the headers. Used as `sterna/isolation`, in the page and in a service worker; `isolation-worker.js` is a
// service worker that does only this.

/** How other sites' resources may be embedded in an isolated page. */
export type EmbedderPolicy = "require-corp" | "credentialless";

/**
 * The response with the headers that isolate a page and its workers. For service workers: pass what would be
 * answered to a page's, script's or worker's request through this.
 *
 * ```js
 * addEventListener("fetch", (event) => event.respondWith(fetch(event.request).then((found) => withIsolation(found))));
 * ```
 *
 * @param embedderPolicy `"credentialless"` also admits other sites' resources that do not say that they may be
 * embedded, without cookies; Safari does not know it
 */
export function withIsolation(response: Response, embedderPolicy: EmbedderPolicy = "require-corp"): Response {
	// What a page may not read is passed on as it is.
	if (response.type === "opaque" || response.type === "opaqueredirect" || response.status === 0)
		return response;
	const headers = new Headers(response.headers);
	headers.set("Cross-Origin-Opener-Policy", "same-origin");
	headers.set("Cross-Origin-Embedder-Policy", embedderPolicy);
	headers.set("Cross-Origin-Resource-Policy", "same-origin");
	const { status, statusText } = response;
	const hasBody = ![204, 205, 304].includes(status);
	return new Response(hasBody ? response.body : null, { status, statusText, headers });
}

/** Remembers, for this tab, that the page was loaded again for the service worker's sake. */
const RELOADED = "sterna-isolation-reloaded";

/** Resolves when a service worker controls the page. */
async function controlled(): Promise<void> {
	const { serviceWorker } = navigator;
	await serviceWorker.ready;
	if (serviceWorker.controller) return;
	await new Promise<void>((resolve) =>
		serviceWorker.addEventListener("controllerchange", () => resolve(), { once: true }),
	);
}

/**
 * Isolates this page with a service worker that adds the headers: registers it and, once it is ready, loads the page
 * again, at most once a tab. Call it before anything that a reload would lose.
 *
 * ```js
 * await isolatePage("/isolation-worker.js"); // a copy of the package's file of that name
 * ```
 *
 * @param script the address of the service worker's script; without one, the page registers its own
 * @returns whether the page is isolated; while it is being loaded again, nothing
 */
export async function isolatePage(script?: string | URL, options?: RegistrationOptions): Promise<boolean> {
	if (globalThis.crossOriginIsolated) {
		sessionStorage.removeItem(RELOADED);
		return true;
	}
	if (!globalThis.isSecureContext || !navigator.serviceWorker) return false;
	try {
		if (script !== undefined) await navigator.serviceWorker.register(script, options);
		await controlled();
	} catch {
		// A browser that forbids service workers, as in some private windows.
		return false;
	}
	if (sessionStorage.getItem(RELOADED) !== null) return false;
	sessionStorage.setItem(RELOADED, "1");
	location.reload();
	return new Promise(() => undefined);
}
