// Our package, as the benchmark calls it in a page.

let model;

/** Loads the package from `base`, and a model with options of `loadModel`; gives the time, the memory and what computes. */
export async function load({ base, url, options }) {
	const { loadModel } = await import(`${base}index.js`);
	const begin = performance.now();
	// What is measured is the engine: nothing is kept.
	model = await loadModel(url, { cache: false, ...options });
	const ms = performance.now() - begin;
	const { memory } = await model.stats();
	const { device, adapter, kernel, threads } = model.info;
	return { ms, memory, engine: { device, adapter, kernel, threads } };
}

/** Loads a model that is kept in the browser's storage, from there where it is, and lets go of it. */
export async function loadStored({ base, url, options }) {
	const { loadModel } = await import(`${base}index.js`);
	const begin = performance.now();
	const stored = await loadModel(url, { ...options, cache: { required: true } });
	const ms = performance.now() - begin;
	const { memory } = await stored.stats();
	await stored.dispose();
	return { ms, memory };
}

/** A text of `tokens` tokens, with the one that begins a sequence; the next `salt` gives one that begins otherwise. */
export async function promptText({ tokens, salt }) {
	const letter = (_, i) => String.fromCharCode(97 + ((salt * 7 + 3 * i * i + 5 * i) % 26));
	let length = 0;
	for (let missing = tokens; missing > 0; ) {
		length += missing;
		const text = Array.from({ length }, letter).join("");
		missing = tokens - (await model.tokenize(text)).length;
	}
	return Array.from({ length }, letter).join("");
}

/** What a GPU was given to do between two counts. */
function work(before, after) {
	if (!before || !after) return undefined;
	return Object.fromEntries(Object.entries(after).map(([name, count]) => [name, count - before[name]]));
}

/** Computes a prompt and generates `tokens` tokens; counts those of the prompt that were not cached. */
export async function generate({ text, tokens }) {
	const before = (await model.stats()).gpu;
	const begin = performance.now();
	const { usage } = await model.generate(text, { maxTokens: tokens, temperature: 0, ignoreEos: true });
	const ms = performance.now() - begin;
	const gpu = work(before, (await model.stats()).gpu);
	return { ms, promptTokens: usage.promptTokens - usage.cachedTokens, tokens: usage.completionTokens, gpu };
}
