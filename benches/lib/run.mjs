// The whole benchmark: from a plan to the document that `benches/README.md` describes.
import { startReader } from "./bandwidth.mjs";
import { enginesOf, startEngine, versions } from "./engines.mjs";
import { measureKernels } from "./kernels.mjs";
import { describeMachine, keepBusy } from "./machine.mjs";
import { givenModel, syntheticModels } from "./models.mjs";
import { measureRounds } from "./rounds.mjs";
import { serve } from "./server.mjs";
import { measureStored } from "./stored.mjs";
import { summariseEngine, summariseReads } from "./summary.mjs";

/** Tokens that the contexts hold at least. */
const CONTEXT = 512;

/** Loads from storage. */
const STORED_ROUNDS = 3;

const say = (text) => console.error(text);

/** One model on every engine that runs it. */
async function measureModel(model, { server, reader, plan }) {
	const url = server.addFile(model.path);
	const wanted = await enginesOf({ ...plan, peer: plan.peer && model.peer }, server);
	const contextLength = Math.max(CONTEXT, plan.prompt + 1, plan.tokens + 2);
	const engines = [];
	const { name, fileBytes } = model;
	say(`${name}: from storage`);
	const stored = await measureStored(wanted[0], server, {
		url,
		fileBytes,
		contextLength,
		rounds: STORED_ROUNDS,
	});
	try {
		for (const engine of wanted) {
			say(`${model.name}: ${engine.name} loads`);
			engines.push(await startEngine(engine, server, url, contextLength));
		}
		const [ours] = engines;
		if (ours.refusal) throw new Error(`${model.name}: ${ours.refusal}`);
		const running = engines.filter(({ tab }) => tab);
		say(`${model.name}: ${plan.rounds} rounds`);
		const { reads, runs, failures } = await measureRounds(running, reader, plan);
		const results = running.flatMap((engine, index) => {
			if (failures.has(index)) return [];
			const weights = engine.loaded.memory?.weights;
			const tokenBytes = model.headIsEmbedding ? weights : undefined;
			const facts = { fileBytes: model.fileBytes, tokenBytes, first: runs[0] };
			return [summariseEngine(engine, runs[index], reads, facts)];
		});
		const refused = [
			...engines.filter(({ refusal }) => refusal),
			...[...failures].map(([index, refusal]) => ({ name: running[index].name, refusal })),
		];
		const { what, headIsEmbedding } = model;
		return {
			...{ name, fileBytes, ...what, headIsEmbedding },
			stored,
			read: summariseReads(reads),
			engines: results,
			refusals: refused.map(({ name, refusal }) => ({ name, refusal })),
		};
	} finally {
		for (const { tab } of engines) await tab?.close();
	}
}

/**
 * Runs the benchmark.
 *
 * @param plan `quick`: small models; `model`: a file in place of the synthetic ones; `rounds`, `prompt`, `tokens`:
 * numbers; `loadOptions`: of `loadModel`, with the number of `threads`; `device`: "wasm" or
 * "webgpu", the first engine's; `comparisons`: names of `COMPARISONS`;
 * `peer`, `kernels`: whether these are measured; `busy`: how many threads compute beside
 */
export async function runBenchmark(plan) {
	const kernels = plan.kernels ? measureKernels(plan.quick) : undefined;
	const models = plan.model ? [givenModel(plan.model)] : syntheticModels(plan.quick);
	const server = await serve();
	const reader = await startReader(server, plan.loadOptions.threads);
	const machine = describeMachine(reader.browserVersion);
	const stopBusy = keepBusy(plan.busy);
	try {
		const results = [];
		for (const model of models) results.push(await measureModel(model, { server, reader, plan }));
		const date = new Date().toISOString();
		return { schema: 1, date, machine, versions: versions(), plan, kernels, models: results };
	} finally {
		await stopBusy();
		await reader.close();
		server.close();
	}
}
