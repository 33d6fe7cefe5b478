// A service worker that isolates the pages of its scope and does nothing else: for sites without a service worker
// of their own, on servers whose headers cannot be set.

import { withIsolation } from "./isolation.js";

/** The part of a service worker's scope that is used. */
interface Scope {
	skipWaiting(): Promise<void>;
	clients: { claim(): Promise<void> };
	addEventListener(
		type: "install" | "activate",
		listener: (event: { waitUntil(work: Promise<unknown>): void }) => void,
	): void;
	addEventListener(
		type: "fetch",
		listener: (event: { request: Request; respondWith(response: Promise<Response>): void }) => void,
	): void;
}

const scope = globalThis as unknown as Scope;

scope.addEventListener("install", (event) => event.waitUntil(scope.skipWaiting()));
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("fetch", (event) => {
	const { mode, destination } = event.request;
	// What is fetched by scripts, such as models, needs no headers.
	const isDocument = mode === "navigate" || ["worker", "sharedworker", "script"].includes(destination);
	if (isDocument) event.respondWith(fetch(event.request).then((found) => withIsolation(found)));
});
