/** The one place where the page tells that something went wrong, and what can be done about it. */
import { el } from "./dom.ts";

export interface Trouble {
	title: string;
	message: string;
	/** The stable `code` of a `SternaError`, for looking it up. */
	code?: string;
	advice?: string;
	action?: { label: string; run: () => void };
}

export class Banner {
	readonly #root: HTMLElement;

	constructor(root: HTMLElement) {
		this.#root = root;
	}

	show(trouble: Trouble): void {
		const text = el(
			"div",
			{ className: "banner-text" },
			el("p", { className: "banner-title" }, trouble.title),
		);
		text.append(el("p", {}, trouble.message));
		if (trouble.advice) text.append(el("p", { className: "banner-advice" }, trouble.advice));
		if (trouble.code) text.append(el("p", { className: "banner-code" }, el("code", {}, trouble.code)));

		const buttons = el("div", { className: "banner-buttons" });
		const { action } = trouble;
		if (action) {
			const run = () => {
				this.clear();
				action.run();
			};
			buttons.append(el("button", { type: "button", className: "button", onclick: run }, action.label));
		}
		buttons.append(
			el("button", { type: "button", className: "button", onclick: () => this.clear() }, "Dismiss"),
		);

		this.#root.replaceChildren(text, buttons);
		this.#root.hidden = false;
	}

	clear(): void {
		this.#root.hidden = true;
		this.#root.replaceChildren();
	}
}
