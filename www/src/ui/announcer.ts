/**
 * Speaks a streamed answer to screen readers: whole sentences, a few seconds apart, instead of every token.
 */

const PAUSE_MS = 2500;
const SENTENCE_END = /[.!?…。！？]["'”’)]*\s|\n/g;

export class Announcer {
	readonly #region: HTMLElement;
	#pending = "";
	#timer: ReturnType<typeof setTimeout> | undefined;

	constructor(region: HTMLElement) {
		this.#region = region;
	}

	/** Says something at once. */
	say(text: string): void {
		this.#region.textContent = text;
	}

	/** Adds streamed text, to be said when a sentence is complete. */
	push(delta: string): void {
		this.#pending += delta;
		this.#timer ??= setTimeout(() => this.#sayCompleteSentences(), PAUSE_MS);
	}

	/** Says what is left of the stream, then `last`. */
	finish(last = ""): void {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		const rest = `${this.#pending} ${last}`.trim();
		this.#pending = "";
		if (rest) this.say(rest);
	}

	#sayCompleteSentences(): void {
		this.#timer = undefined;
		const ends = [...this.#pending.matchAll(SENTENCE_END)];
		const last = ends.at(-1);
		if (!last) return;
		const end = last.index + last[0].length;
		this.say(this.#pending.slice(0, end).trim());
		this.#pending = this.#pending.slice(end);
	}
}
