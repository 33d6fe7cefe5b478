/** Keeps the newest text in view while the reader is at the end, and never pulls a reader who scrolled up. */

const NEAR_END_PX = 48;

export class StickToBottom {
	readonly #scroller: HTMLElement;
	readonly #content: HTMLElement;
	readonly #jump: HTMLButtonElement;
	#sticking = true;
	#lastTop = 0;

	constructor(scroller: HTMLElement, content: HTMLElement, jump: HTMLButtonElement) {
		this.#scroller = scroller;
		this.#content = content;
		this.#jump = jump;
		scroller.addEventListener("scroll", () => this.#noticeScroll(), { passive: true });
		jump.addEventListener("click", () => this.toEnd());
		const observer = new ResizeObserver(() => this.#follow());
		observer.observe(content);
		observer.observe(scroller);
	}

	toEnd(): void {
		this.#sticking = true;
		this.#follow();
	}

	#follow(): void {
		const isEmpty = this.#content.childElementCount === 0;
		if (this.#sticking && !isEmpty) this.#scroller.scrollTop = this.#scroller.scrollHeight;
		this.#jump.hidden = this.#sticking || isEmpty;
	}

	// Scroll events arrive late, when more text may have come: only a move upwards is the reader's wish.
	#noticeScroll(): void {
		const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
		const movedUp = scrollTop < this.#lastTop;
		this.#lastTop = scrollTop;
		if (scrollHeight - scrollTop - clientHeight < NEAR_END_PX) this.#sticking = true;
		else if (movedUp) this.#sticking = false;
		this.#jump.hidden = this.#sticking || this.#content.childElementCount === 0;
	}
}
