// What the same engine reaches when it only reads memory: no way of computing a token is faster than reading
// its weights once.
const workers = [];

/** Sends every worker a message; resolves to the sum of their answers. */
async function all(message) {
	const answers = workers.map(
		(worker) =>
			new Promise((done, fail) => {
				worker.onmessage = ({ data }) => done(data);
				worker.onerror = ({ message }) => fail(new Error(message));
				worker.postMessage(message);
			}),
	);
	return (await Promise.all(answers)).reduce((sum, bytes) => sum + bytes, 0);
}

/** Starts `threads` workers that share `bytes` bytes. */
export async function load({ url, threads, bytes }) {
	for (let i = 0; i < threads; i++) {
		workers.push(new Worker(new URL("./read-worker.mjs", import.meta.url), { type: "module" }));
	}
	await all({ prepare: { url, bytes: bytes / threads } });
	// The engine's second compiler needs a moment to notice the loop.
	await all({ passes: 3 });
}

/** Reads everything `passes` times. */
export async function read({ passes }) {
	const begin = performance.now();
	const bytes = passes * (await all({ passes }));
	return { ms: performance.now() - begin, bytes };
}
