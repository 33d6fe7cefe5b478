/** The facts about the loaded model, behind a line that sums them up. */
import type { Model } from "sterna";
import { el } from "../ui/dom.ts";
import { bytes, count, duration } from "../ui/format.ts";
import type { HeldModel } from "./model-host.ts";

const WIDE = window.matchMedia("(min-width: 40rem)");

const ACTIVATIONS = { int8: "8-bit integers", float: "floats" };
/** What is known about `held`, or a line saying that nothing is loaded. Memory follows when the model tells it. */
export function modelInfo(held: HeldModel | undefined): HTMLElement {
	if (!held) return el("p", { className: "no-model" }, "No model is loaded.");
	const { name, model } = held;
	const list = el("dl", { className: "facts" }, ...rows(shapeOf(model)));
	// The engine answers in turn: while it generates, this waits. A model that is gone has nothing to add.
	void memoryOf(model).then(
		(facts) => list.append(...rows(facts)),
		() => undefined,
	);
	return el("details", { className: "model-details", open: WIDE.matches }, el("summary", {}, name), list);
}

type Fact = [term: string, fact: string];

function shapeOf(model: Model): Fact[] {
	const { config, contextLength, hasChatTemplate } = model.info;
	const { numLayers, hiddenSize, numHeads, numKvHeads } = config;
	return [
		["Architecture", config.architecture],
		["Shape", `${numLayers} layers of ${hiddenSize}, ${numHeads} heads, ${numKvHeads} key/value heads`],
		["Vocabulary", `${count(config.vocabSize)} tokens`],
		["Activations", ACTIVATIONS[config.linearInput]],
		["Context", `${count(contextLength)} tokens, made for ${count(config.maxContext)}`],
		["Chat template", hasChatTemplate ? "its own" : "none"],
		["Runs on", runsOn(model)],
		...model.info.fallbacks.map(({ reason }): Fact => ["Not on the GPU", reason]),
	];
}

function runsOn({ info: { device, kernel, adapter, threads } }: Model): string {
	if (device === "webgpu") return `The GPU${adapter ? `, ${adapter}` : ""} (${kernel})`;
	return `The processor, in WebAssembly (${kernel}, ${threads === 1 ? "1 thread" : `${threads} threads`})`;
}

async function memoryOf(model: Model): Promise<Fact[]> {
	const { memory, load } = await model.stats();
	const context = `${bytes(memory.kvCache)} context (${model.info.kvCache})`;
	return [
		["Memory", `${bytes(memory.weights)} weights, ${context}, ${bytes(memory.wasm)} in all`],
		["Read", `${bytes(load.bytes)} in ${duration(load.duration)}`],
	];
}

function rows(facts: Fact[]): HTMLElement[] {
	return facts.flatMap(([term, fact]) => [el("dt", {}, term), el("dd", {}, fact)]);
}
