/** What a model would take, shown before a large download begins. */
import { type Estimate, estimate } from "sterna";
import { el } from "../ui/dom.ts";
import { bytes, count } from "../ui/format.ts";
import type { NamedSource } from "./sources.ts";

/** What is smaller is loaded without asking. */
const ASK_FROM = 64e6;

export class EstimatePanel {
	readonly #root: HTMLElement;
	#looking: AbortController | undefined;

	constructor(root: HTMLElement) {
		this.#root = root;
	}

	/** Ends what is going on. */
	clear(): void {
		this.#looking?.abort();
		this.#looking = undefined;
		this.#root.hidden = true;
		this.#root.replaceChildren();
	}

	/**
	 * Looks at a model and calls `onAgreed` when it is to be loaded: at once when it is small and fits, else when the
	 * visitor agrees. What cannot be looked at is loaded at once too: the load tells best what is wrong.
	 */
	async ask(wanted: NamedSource, onAgreed: () => void): Promise<void> {
		this.clear();
		const looking = new AbortController();
		this.#looking = looking;
		this.#show(el("p", {}, `Looking at ${wanted.name} …`));
		const found = await estimate(wanted.source, { signal: looking.signal }).catch(() => undefined);
		if (looking.signal.aborted) return;
		const isSmall = found?.supported && found.fits && (found.downloadBytes ?? 0) < ASK_FROM;
		if (!found || isSmall) {
			this.clear();
			onAgreed();
			return;
		}
		const agree = el("button", { type: "button", className: "button", id: "agree-load" }, "Load it");
		agree.addEventListener("click", () => {
			this.clear();
			onAgreed();
		});
		const cancel = el(
			"button",
			{ type: "button", className: "button", onclick: () => this.clear() },
			"Cancel",
		);
		this.#show(...describe(wanted.name, found), el("p", { className: "field-row" }, agree, cancel));
		agree.focus();
	}

	#show(...children: Node[]): void {
		this.#root.replaceChildren(...children);
		this.#root.hidden = false;
	}
}

function describe(name: string, found: Estimate): HTMLElement[] {
	const { downloadBytes, totalBytes, memory, parameters, problem } = found;
	const facts: string[] = [`${count(parameters)} parameters`];
	if (downloadBytes !== undefined && totalBytes !== undefined) {
		const stored = totalBytes - downloadBytes;
		facts.push(
			stored > 0
				? `${bytes(downloadBytes)} of ${bytes(totalBytes)} to download`
				: `${bytes(downloadBytes)} to download`,
		);
	}
	if (memory) facts.push(`${bytes(memory.total)} of memory`);
	const verdict = !found.supported
		? `It cannot run here: ${problem}`
		: found.fits
			? "It should run on this device."
			: "It will hardly run on this device.";
	return [
		el("p", {}, el("strong", {}, name), ` · ${facts.join(" · ")}`),
		el("p", {}, verdict),
		...found.advice.map((text) => el("p", { className: "help" }, text)),
	];
}
