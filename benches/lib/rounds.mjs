// Measures engines in turn, round by round: whatever else the machine does meanwhile meets all of them, so the
// ratios within a round hold where the times alone do not.

import { firstLine } from "./tab.mjs";

const WARM_UP = { prompt: 8, tokens: 4 };

/** The shortest prompt: what begins a sequence, and a token that differs from the last time's. */
const SHORT = 2;

async function generate({ tab, name }, text, tokens) {
	const run = await tab.callTimed("generate", { text, tokens });
	if (run.tokens !== tokens)
		throw new Error(`${name} generated ${run.tokens} tokens in the place of ${tokens}`);
	return run;
}

const perToken = (tokens, { ms, cpuMs }, less = { ms: 0, cpuMs: 0 }) => ({
	ms: (ms - less.ms) / tokens,
	cpuMs: cpuMs === undefined ? undefined : (cpuMs - less.cpuMs) / tokens,
});

/** What a GPU was given to do for a token: dispatches, submits, bytes read back. */
function workPerToken(tokens, { gpu }, less) {
	if (!gpu || !less.gpu) return undefined;
	return Object.fromEntries(
		Object.entries(gpu).map(([name, count]) => [name, (count - less.gpu[name]) / tokens]),
	);
}

/**
 * Runs the rounds.
 *
 * A round of an engine is three generations: a prompt to its first token (prefill), a short prompt to its first
 * token, and one to `tokens` further ones; the difference of the last two is decoding alone.
 *
 * @param engines started engines; the first is ours, whose tokenizer measures the prompts
 * @param reader what measures the read bandwidth, once a round
 * @param plan `{ rounds, prompt, tokens }`
 * @returns `{ reads, runs, failures }`: a read each round; for each engine a list of
 * `{ prefill: { ms, cpuMs }, decode: { ms, cpuMs }, gpu }`, times and what a GPU was given to do, a token; and by the engine's index why it stopped, where
 * another one than ours did
 */
export async function measureRounds(engines, reader, { rounds, prompt, tokens }) {
	let salt = 0;
	// No two prompts in a row begin alike, so that no cached one helps.
	const text = (length) => {
		salt += 1;
		return engines[0].tab.call("promptText", { tokens: length, salt });
	};
	const reads = [];
	const runs = engines.map(() => []);
	const failures = new Map();
	const inTurn = async (measure) => {
		for (const [index, engine] of engines.entries()) {
			if (failures.has(index)) continue;
			try {
				await measure(engine, runs[index]);
			} catch (error) {
				if (index === 0) throw error;
				failures.set(index, firstLine(error));
			}
		}
	};

	const warmUp = await text(WARM_UP.prompt);
	await inTurn((engine) => generate(engine, warmUp, WARM_UP.tokens));
	for (let round = 0; round < rounds; round++) {
		reads.push(await reader.read());
		const texts = { long: await text(prompt), first: await text(SHORT), further: await text(SHORT) };
		await inTurn(async (engine, list) => {
			const long = await generate(engine, texts.long, 1);
			const first = await generate(engine, texts.first, 1);
			const further = await generate(engine, texts.further, 1 + tokens);
			list.push({
				prefill: perToken(long.promptTokens, long),
				decode: perToken(tokens, further, first),
				gpu: workPerToken(tokens, further, first),
			});
		});
	}
	return { reads, runs, failures };
}
