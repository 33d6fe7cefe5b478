/** Makes the page work without a network, and isolates it where its server does not. */
import { isolatePage } from "sterna/isolation";
import { Workbox } from "workbox-window";

/**
 * Installs the service worker. Where the server does not isolate the page, the first visit loads it once more; nothing
 * comes after that.
 *
 * @param onUpdate is called when a new version of the page is ready, with what switches to it
 */
export async function prepareOffline(onUpdate: (switchOver: () => void) => void): Promise<void> {
	if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
	const worker = new Workbox("./service-worker.js");
	worker.addEventListener("waiting", () =>
		onUpdate(() => {
			worker.addEventListener("controlling", () => location.reload());
			worker.messageSkipWaiting();
		}),
	);
	try {
		await worker.register();
	} catch {
		// Private windows of some browsers have no service workers; the page works without.
		return;
	}
	await isolatePage();
}
