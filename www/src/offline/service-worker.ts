/// <reference lib="webworker" />
/**
 * Keeps the page and the engine for visits without a network, and isolates the page on servers that cannot. Models
 * are none of its business: the engine keeps them itself, and no update of this script touches them.
 */
import { withIsolation } from "sterna/isolation";
import { relaxedSimd } from "wasm-feature-detect";
import { clientsClaim } from "workbox-core";
import { addPlugins, cleanupOutdatedCaches, precacheAndRoute } from "workbox-precaching";
import { registerRoute } from "workbox-routing";
import { CacheFirst } from "workbox-strategies";

declare const self: ServiceWorkerGlobalScope;

const ENGINE_CACHE = "sterna-engine";

const isolation = {
	handlerWillRespond: async ({ response }: { response: Response }) => withIsolation(response),
};

// The build puts the list of the page's files here.
const manifest = (self as unknown as { __WB_MANIFEST: { url: string; revision: string | null }[] })
	.__WB_MANIFEST;
const isEngine = ({ url }: { url: string }) => url.endsWith(".wasm");

addPlugins([isolation]);
precacheAndRoute(manifest.filter((entry) => !isEngine(entry)));
cleanupOutdatedCaches();

// The engine's builds are large, and a browser runs only some of them.
const engine = new CacheFirst({ cacheName: ENGINE_CACHE, plugins: [isolation] });
registerRoute(({ url }) => url.origin === self.location.origin && url.pathname.endsWith(".wasm"), engine);

const engineUrls = manifest.filter(isEngine).map(({ url }) => new URL(url, self.location.href).href);

/** The builds that this browser runs: with threads once the page is isolated, and without. */
async function usableEngines(): Promise<string[]> {
	const isRelaxed = await relaxedSimd();
	return engineUrls.filter((url) => url.includes("relaxed") === isRelaxed);
}

self.addEventListener("install", (event) => {
	const store = async () => {
		for (const url of await usableEngines())
			await Promise.all(engine.handleAll({ event, request: new Request(url) }));
	};
	event.waitUntil(store());
});

self.addEventListener("activate", (event) => {
	const forget = async () => {
		const cache = await caches.open(ENGINE_CACHE);
		const outdated = (await cache.keys()).filter(({ url }) => !engineUrls.includes(url));
		await Promise.all(outdated.map((request) => cache.delete(request)));
	};
	event.waitUntil(forget());
});

// A new version waits until its visitor agrees, or has closed all pages of the old one.
self.addEventListener("message", ({ data }) => {
	if (data?.type === "SKIP_WAITING") self.skipWaiting();
});
clientsClaim();
