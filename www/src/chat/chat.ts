/** Runs the conversation: asks the model, streams the answer into the transcript, stops, starts over. */
import type { GenerationResult } from "sterna";
import { isAbort } from "../model/errors.ts";
import type { HeldModel } from "../model/model-host.ts";
import type { Announcer } from "../ui/announcer.ts";
import { el } from "../ui/dom.ts";
import type { Settings } from "./settings.ts";
import { TurnView } from "./turn-view.ts";
import { type FittedPrompt, fitToContext, type Turn } from "./turns.ts";

export interface ChatDependencies {
	transcript: HTMLOListElement;
	announcer: Announcer;
	model(): HeldModel | undefined;
	settings(): Settings;
	onRunning(running: boolean): void;
	onError(error: unknown, held: HeldModel): void;
}

interface Entry {
	turn: Turn;
	view: TurnView;
}

export class Chat {
	readonly #page: ChatDependencies;
	#entries: Entry[] = [];
	#running: AbortController | undefined;

	constructor(dependencies: ChatDependencies) {
		this.#page = dependencies;
	}

	get isEmpty(): boolean {
		return this.#entries.length === 0;
	}

	get isRunning(): boolean {
		return this.#running !== undefined;
	}

	/** Asks a question; does nothing while an answer is running or no model is loaded. */
	ask(question: string): void {
		if (this.isRunning || !this.#page.model()) return;
		const turn: Turn = { question, answer: "" };
		const view = new TurnView(turn, () => this.#regenerate());
		this.#entries.at(-1)?.view.setIsLast(false);
		view.setIsLast(true);
		this.#entries.push({ turn, view });
		this.#page.transcript.append(view.element);
		void this.#answer({ turn, view });
	}

	stop(): void {
		this.#running?.abort();
	}

	/** Forgets the conversation. */
	clear(): void {
		this.stop();
		this.#entries = [];
		this.#page.transcript.replaceChildren();
	}

	/** Puts a line into the transcript that belongs to nobody, in place of one that nothing has followed. */
	note(text: string): void {
		const last = this.#page.transcript.lastElementChild;
		if (last?.classList.contains("note")) last.remove();
		this.#page.transcript.append(el("li", { className: "note" }, text));
	}

	#regenerate(): void {
		const last = this.#entries.at(-1);
		if (!last || this.isRunning || !this.#page.model()) return;
		last.turn.answer = "";
		void this.#answer(last);
	}

	async #answer(entry: Entry): Promise<void> {
		const held = this.#page.model();
		if (!held) return;
		const controller = new AbortController();
		this.#running = controller;
		this.#page.onRunning(true);
		held.hold();
		entry.view.begin();
		try {
			const result = await this.#stream(held, entry, controller.signal);
			if (controller.signal.aborted) this.#showStopped(entry);
			else this.#showComplete(entry, result);
		} catch (error) {
			if (isAbort(error)) this.#showStopped(entry);
			else this.#showFailed(entry, error, held);
		} finally {
			this.#running = undefined;
			this.#page.onRunning(false);
			void held.release();
		}
	}

	async #stream(held: HeldModel, { turn, view }: Entry, signal: AbortSignal): Promise<GenerationResult> {
		const { systemPrompt, seed, maxTokens: wanted, ...sampling } = this.#page.settings();
		const turns = this.#entries.map((entry) => entry.turn);
		const prompt = await fitToContext(held.model, systemPrompt, turns, wanted);
		this.#showForgotten(prompt, held.model.info.contextLength);

		const { messages, maxTokens } = prompt;
		const answer = held.model.chat(messages, { ...sampling, maxTokens, seed: seed ?? undefined, signal });
		for await (const { text } of answer) {
			if (signal.aborted) break;
			turn.answer += text;
			view.grow();
			this.#page.announcer.push(text);
		}
		return answer;
	}

	#showComplete({ view }: Entry, result: GenerationResult): void {
		view.complete(result);
		this.#page.announcer.finish();
	}

	#showStopped({ view }: Entry): void {
		view.stopped();
		this.#page.announcer.finish("Stopped.");
	}

	#showFailed({ view }: Entry, error: unknown, held: HeldModel): void {
		view.failed();
		this.#page.announcer.finish();
		this.#page.onError(error, held);
	}

	/** Marks where the model's memory of the conversation begins. */
	#showForgotten({ dropped }: FittedPrompt, contextLength: number): void {
		this.#page.transcript.querySelector(".forgotten")?.remove();
		const first = this.#entries[dropped];
		if (dropped === 0 || !first) return;
		const text = `The model no longer sees what is above: its context of ${contextLength} tokens is full.`;
		first.view.element.before(el("li", { className: "note forgotten" }, text));
	}
}
