/**
 * The settings panel: a column beside the chat where there is room for both, a modal sheet where there is not.
 * Both are the same native dialog, opened with `show()` or `showModal()`.
 */
import { prepareDialog } from "./dialogs.ts";
import { readStored, writeStored } from "./storage.ts";

const STORAGE_KEY = "sterna.settings-open";
const ROOM_FOR_BOTH = "(min-width: 60rem)";

export class SidePanel {
	readonly #dialog: HTMLDialogElement;
	readonly #toggle: HTMLButtonElement;
	readonly #wide = window.matchMedia(ROOM_FOR_BOTH);

	constructor(dialog: HTMLDialogElement, toggle: HTMLButtonElement) {
		this.#dialog = dialog;
		this.#toggle = toggle;
		prepareDialog(dialog);
		toggle.addEventListener("click", () => this.#flip());
		dialog.addEventListener("close", () => this.#closed());
		this.#wide.addEventListener("change", () => dialog.open && dialog.close());
		if (this.#wide.matches && readStored(STORAGE_KEY) === true) this.#openBeside();
	}

	#flip(): void {
		if (this.#dialog.open) this.#dialog.close();
		else if (this.#wide.matches) this.#openBeside();
		else this.#dialog.showModal();
		this.#toggle.setAttribute("aria-expanded", String(this.#dialog.open));
		if (this.#wide.matches) writeStored(STORAGE_KEY, this.#dialog.open);
	}

	// show() moves the focus into the dialog, which a column that merely appears should not do.
	#openBeside(): void {
		const focused = document.activeElement;
		this.#dialog.show();
		if (focused instanceof HTMLElement) focused.focus();
		this.#toggle.setAttribute("aria-expanded", "true");
	}

	#closed(): void {
		this.#toggle.setAttribute("aria-expanded", "false");
		if (this.#wide.matches) writeStored(STORAGE_KEY, false);
	}
}
