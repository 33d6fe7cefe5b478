/** The dialog about the model: what is loaded, what is kept, and the ways to another one. */

import { prepareDialog } from "../ui/dialogs.ts";
import { byId } from "../ui/dom.ts";
import { EstimatePanel } from "./estimate-panel.ts";
import type { HeldModel } from "./model-host.ts";
import { modelInfo } from "./model-info.ts";
import { embeddedModel, fromAddress, fromFiles, type NamedSource, type PickedFiles } from "./sources.ts";
import { StoredModels } from "./stored-models.ts";

export interface ModelDialogEvents {
	onChoice(wanted: NamedSource): void;
	onFilesWithoutModel(): void;
}

export class ModelDialog {
	readonly #dialog = byId("models", HTMLDialogElement);
	readonly #info = byId("model-info", HTMLElement);
	readonly #address = byId("model-url", HTMLInputElement);
	readonly #estimate = new EstimatePanel(byId("estimate", HTMLElement));
	readonly #stored = new StoredModels(byId("stored-models", HTMLElement), (wanted) => this.#choose(wanted));
	readonly #events: ModelDialogEvents;

	constructor(events: ModelDialogEvents) {
		this.#events = events;
		prepareDialog(this.#dialog);
		this.#dialog.addEventListener("close", () => this.#estimate.clear());
		this.#prepareAddress();
		this.#preparePicker("pick-files", "file-input");
		this.#preparePicker("pick-folder", "folder-input");
		byId("load-embedded", HTMLButtonElement).addEventListener("click", () => this.#choose(embeddedModel()));
	}

	open(held: HeldModel | undefined): void {
		this.#info.replaceChildren(modelInfo(held));
		void this.#stored.refresh();
		this.#dialog.showModal();
	}

	/** Takes files from the pickers or from a drop. */
	takeFiles(picked: PickedFiles): void {
		const wanted = fromFiles(picked);
		if (wanted) {
			this.#choose(wanted);
			return;
		}
		this.#dialog.close();
		this.#events.onFilesWithoutModel();
	}

	#prepareAddress(): void {
		byId("url-form", HTMLFormElement).addEventListener("submit", (event) => {
			event.preventDefault();
			const wanted = fromAddress(this.#address.value);
			this.#address.setCustomValidity(
				wanted ? "" : "Enter a web address, such as https://example.org/model.gguf, or hf:owner/repo",
			);
			if (wanted) void this.#estimate.ask(wanted, () => this.#choose(wanted));
			else this.#address.reportValidity();
		});
		this.#address.addEventListener("input", () => {
			this.#address.setCustomValidity("");
			this.#estimate.clear();
		});
	}

	#preparePicker(buttonId: string, inputId: string): void {
		const input = byId(inputId, HTMLInputElement);
		byId(buttonId, HTMLButtonElement).addEventListener("click", () => input.click());
		input.addEventListener("change", () => {
			const files = [...(input.files ?? [])];
			input.value = ""; // so that choosing the same file again is a change
			if (files.length > 0) this.takeFiles({ files });
		});
	}

	#choose(wanted: NamedSource): void {
		this.#dialog.close();
		this.#events.onChoice(wanted);
	}
}
