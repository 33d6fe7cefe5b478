/** The models that are kept on this device: what each takes, loading one again, and deleting it. */
import { type CachedModel, cache } from "sterna";
import { el } from "../ui/dom.ts";
import { bytes } from "../ui/format.ts";
import { explain } from "./errors.ts";
import { type NamedSource, nameOf } from "./sources.ts";

export class StoredModels {
	readonly #root: HTMLElement;
	readonly #onChoice: (wanted: NamedSource) => void;

	constructor(root: HTMLElement, onChoice: (wanted: NamedSource) => void) {
		this.#root = root;
		this.#onChoice = onChoice;
	}

	/** Looks what there is, and shows it. */
	async refresh(): Promise<void> {
		try {
			const [models, { quota, isPersistent }] = await Promise.all([cache.list(), cache.usage()]);
			const list = el("ul", { className: "stored-list" }, ...models.map((model) => this.#row(model)));
			const none = el(
				"p",
				{ className: "help" },
				"Nothing yet. A model that you load stays here for the next visit.",
			);
			const total = models.reduce((sum, model) => sum + model.storedBytes, 0);
			const room = quota === undefined ? "" : ` The browser allows this site about ${bytes(quota)}.`;
			const usage = el("p", { className: "help", id: "stored-usage" }, `${bytes(total)} in all.${room} `);
			if (!isPersistent) usage.append(this.#keepButton());
			this.#root.replaceChildren(...(models.length > 0 ? [list, usage] : [none]));
		} catch (error) {
			this.#root.replaceChildren(el("p", { className: "help" }, explain(error).message));
		}
	}

	#row(model: CachedModel): HTMLElement {
		const { source, storedBytes, totalBytes, isComplete } = model;
		const name = nameOf(source);
		const state = isComplete
			? bytes(storedBytes)
			: `${bytes(storedBytes)}${totalBytes ? ` of ${bytes(totalBytes)}` : ""}, interrupted`;
		const load = el(
			"button",
			{
				type: "button",
				className: "button",
				title: `Load ${source}`,
				onclick: () => this.#onChoice({ name, source }),
			},
			isComplete ? "Load" : "Resume",
		);
		const label = `Delete ${name} from this device`;
		const remove = el(
			"button",
			{ type: "button", className: "button", title: label, attributes: { "aria-label": label } },
			"Delete",
		);
		const problem = el("p", { className: "help stored-problem", attributes: { role: "status" } });
		remove.addEventListener("click", async () => {
			remove.disabled = true;
			try {
				await cache.delete(source);
				await this.refresh();
			} catch (error) {
				problem.textContent = explain(error).message;
				remove.disabled = false;
			}
		});
		return el(
			"li",
			{ className: "stored-model" },
			el("span", { className: "stored-name", title: source }, name),
			el("span", { className: "numbers" }, state),
			el("span", { className: "stored-actions" }, load, remove),
			problem,
		);
	}

	/** Browsers may delete what a site stores when a device runs full, unless they promised not to. */
	#keepButton(): HTMLElement {
		const button = el(
			"button",
			{ type: "button", className: "link-button" },
			"Never delete it to free space",
		);
		button.addEventListener("click", async () => {
			const isKept = await navigator.storage.persist();
			button.replaceWith(isKept ? "It will be kept." : "The browser did not promise to keep it.");
		});
		return button;
	}
}
