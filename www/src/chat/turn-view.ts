/** One question with its answer in the transcript. */
import type { GenerationResult } from "sterna";
import { copyButton } from "../ui/clipboard.ts";
import { el } from "../ui/dom.ts";
import { duration, tokenRate } from "../ui/format.ts";
import { MarkdownView } from "./markdown.ts";
import type { Turn } from "./turns.ts";

/** Long enough for a screen to keep up, short enough to look like typing. */
const RENDER_INTERVAL_MS = 50;

export class TurnView {
	readonly element: HTMLLIElement;
	readonly #turn: Turn;
	readonly #answer: HTMLElement;
	readonly #text = new MarkdownView({ lineBreaks: true });
	readonly #footer = el("footer", { className: "answer-footer" });
	readonly #onRegenerate: () => void;
	#timer: ReturnType<typeof setTimeout> | undefined;

	constructor(turn: Turn, onRegenerate: () => void) {
		this.#turn = turn;
		this.#onRegenerate = onRegenerate;
		this.#answer = el(
			"article",
			{ className: "answer", attributes: { "aria-label": "Answer" } },
			this.#text.element,
			this.#footer,
		);
		this.element = el(
			"li",
			{ className: "turn" },
			el("article", { className: "question", attributes: { "aria-label": "You" } }, turn.question),
			this.#answer,
		);
	}

	/** The answer begins (again). */
	begin(): void {
		this.#text.update("");
		this.#footer.replaceChildren();
		this.#setState("running");
	}

	/** The turn's answer has grown; shows it at once, or soon where it grows faster than a screen. */
	grow(): void {
		if (this.#timer !== undefined) return;
		this.#text.update(this.#turn.answer);
		this.#timer = setTimeout(() => {
			this.#timer = undefined;
			this.#text.update(this.#turn.answer);
		}, RENDER_INTERVAL_MS);
	}

	complete(result: GenerationResult): void {
		const { timing, usage, finishReason } = result;
		const facts = [
			`first token in ${duration(timing.timeToFirstToken)}`,
			`${usage.completionTokens} ${usage.completionTokens === 1 ? "token" : "tokens"}`,
		];
		if (timing.decodeTps > 0) facts.unshift(tokenRate(timing.decodeTps));
		if (finishReason === "length") facts.push("ended at the length limit");
		const title = `${usage.promptTokens} prompt tokens read at ${tokenRate(timing.prefillTps)}`;
		this.#end("done", el("span", { className: "numbers", title }, facts.join(" · ")));
	}

	stopped(): void {
		this.#end("stopped", el("span", {}, "Stopped"));
	}

	failed(): void {
		this.#end("failed", el("span", {}, this.#turn.answer ? "Broke off" : "No answer"));
	}

	/** Only the last answer can be asked for again. */
	setIsLast(isLast: boolean): void {
		this.element.classList.toggle("is-last", isLast);
	}

	#end(state: string, note: HTMLElement): void {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		this.#text.update(this.#turn.answer);
		const again = el(
			"button",
			{ type: "button", className: "action regenerate", onclick: this.#onRegenerate },
			"Regenerate",
		);
		const actions = el(
			"span",
			{ className: "actions" },
			...(this.#turn.answer ? [copyButton(() => this.#turn.answer)] : []),
			again,
		);
		this.#footer.replaceChildren(note, actions);
		this.#setState(state);
	}

	#setState(state: string): void {
		this.#answer.dataset.state = state;
		this.#answer.setAttribute("aria-busy", String(state === "running"));
	}
}
