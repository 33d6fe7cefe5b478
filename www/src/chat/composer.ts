/** The message box: Enter sends, Shift+Enter breaks the line, an input method's Enter does neither. */
import { byId } from "../ui/dom.ts";

export interface ComposerEvents {
	onSend(text: string): void;
	onStop(): void;
}

export class Composer {
	readonly #input = byId("prompt", HTMLTextAreaElement);
	readonly #send = byId("send", HTMLButtonElement);
	readonly #stop = byId("stop", HTMLButtonElement);
	readonly #events: ComposerEvents;
	#ready = false;
	#running = false;

	constructor(events: ComposerEvents) {
		this.#events = events;
		byId("composer", HTMLFormElement).addEventListener("submit", (event) => {
			event.preventDefault();
			this.#submit();
		});
		this.#input.addEventListener("keydown", (event) => {
			// 229 is how Safari reports the Enter that ends a composition, after isComposing is false again.
			if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
			event.preventDefault();
			this.#submit();
		});
		this.#input.addEventListener("input", () => this.#update());
		this.#stop.addEventListener("click", () => this.#events.onStop());
		this.#update();
	}

	/** Whether there is a model to send to. */
	set ready(ready: boolean) {
		this.#ready = ready;
		this.#update();
	}

	/** While an answer runs, the stop button takes the place of the send button, and of its focus. */
	set running(running: boolean) {
		const hadFocus = document.activeElement === (running ? this.#send : this.#stop);
		this.#running = running;
		this.#update();
		if (hadFocus) this.focus();
	}

	focus(): void {
		this.#input.focus();
	}

	#submit(): void {
		const text = this.#input.value.trim();
		if (!text || !this.#ready || this.#running) return;
		this.#input.value = "";
		this.#update();
		this.#events.onSend(text);
	}

	#update(): void {
		this.#send.hidden = this.#running;
		this.#stop.hidden = !this.#running;
		this.#send.disabled = !this.#ready || this.#input.value.trim() === "";
		// Where the browser cannot size the field to its text (field-sizing), measure it.
		if (!CSS.supports("field-sizing", "content")) {
			this.#input.style.height = "auto";
			this.#input.style.height = `${this.#input.scrollHeight}px`;
		}
	}
}
