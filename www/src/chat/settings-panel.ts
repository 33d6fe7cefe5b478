/** The form of the settings panel, made from the list of fields below. */
import { el } from "../ui/dom.ts";
import {
	DEFAULTS,
	LIMITS,
	loadSettings,
	type NumberSetting,
	type Settings,
	saveSettings,
	withinLimits,
} from "./settings.ts";

interface Field {
	name: NumberSetting;
	label: string;
	help: string;
	control: "range" | "number";
}

const FIELDS: readonly Field[] = [
	{
		name: "temperature",
		label: "Temperature",
		help: "0 always takes the likeliest word; higher is more varied.",
		control: "range",
	},
	{
		name: "topP",
		label: "Top-p",
		help: "Choose among the likeliest words that together reach this share.",
		control: "range",
	},
	{
		name: "minP",
		label: "Min-p",
		help: "Drop words less likely than this share of the best one.",
		control: "range",
	},
	{
		name: "repetitionPenalty",
		label: "Repetition penalty",
		help: "Above 1 discourages words already used.",
		control: "range",
	},
	{ name: "topK", label: "Top-k", help: "Choose among this many words; 0 is no limit.", control: "number" },
	{
		name: "maxTokens",
		label: "Longest answer",
		help: "In tokens, about ¾ of a word each.",
		control: "number",
	},
	{
		name: "seed",
		label: "Seed",
		help: "The same seed gives the same answer. Empty draws a new one.",
		control: "number",
	},
];

export class SettingsPanel {
	readonly #form: HTMLFormElement;
	#settings: Settings = loadSettings();

	constructor(form: HTMLFormElement) {
		this.#form = form;
		this.#render();
		form.addEventListener("submit", (event) => event.preventDefault());
	}

	/** A copy of the present settings. */
	get value(): Settings {
		return { ...this.#settings };
	}

	#render(): void {
		const systemPrompt = el("textarea", {
			id: "setting-systemPrompt",
			rows: 3,
			value: this.#settings.systemPrompt,
			placeholder: "None",
			oninput: () => this.#change({ systemPrompt: systemPrompt.value }),
		});
		const reset = el(
			"button",
			{ type: "button", className: "button", onclick: () => this.#reset() },
			"Reset to defaults",
		);
		this.#form.replaceChildren(
			el("div", { className: "setting" }, labelFor("systemPrompt", "System prompt"), systemPrompt),
			...FIELDS.map((field) => this.#row(field)),
			reset,
		);
	}

	#row(field: Field): HTMLElement {
		const { min, max, step } = LIMITS[field.name];
		const value = this.#settings[field.name];
		const input = el("input", {
			id: `setting-${field.name}`,
			type: field.control,
			min: String(min),
			max: String(max),
			step: String(step),
			value: value === null ? "" : String(value),
			attributes: { "aria-describedby": `help-${field.name}` },
		});
		const help = el("p", { className: "help", id: `help-${field.name}` }, field.help);
		if (field.control === "number") {
			input.inputMode = "numeric";
			input.placeholder = field.name === "seed" ? "Random" : String(DEFAULTS[field.name]);
			// On "change", not "input": half-typed numbers must not be corrected under the visitor's fingers.
			input.addEventListener("change", () => this.#takeNumber(field.name, input));
			return el(
				"div",
				{ className: "setting setting-number" },
				labelFor(field.name, field.label),
				input,
				help,
			);
		}
		const output = el(
			"output",
			{ className: "numbers", attributes: { for: input.id } },
			shown(field.name, Number(value)),
		);
		input.addEventListener("input", () => {
			this.#takeNumber(field.name, input);
			output.textContent = shown(field.name, Number(input.value));
		});
		return el("div", { className: "setting" }, labelFor(field.name, field.label), output, input, help);
	}

	#takeNumber(name: NumberSetting, input: HTMLInputElement): void {
		const typed = input.value.trim() === "" ? undefined : withinLimits(name, Number(input.value));
		const value = typed ?? DEFAULTS[name];
		if (input.type === "number") input.value = value === null ? "" : String(value);
		this.#change({ [name]: value });
	}

	#change(part: Partial<Settings>): void {
		this.#settings = { ...this.#settings, ...part };
		saveSettings(this.#settings);
	}

	#reset(): void {
		this.#change(DEFAULTS);
		this.#render();
		this.#form.querySelector<HTMLButtonElement>("button")?.focus();
	}
}

function labelFor(name: keyof Settings, text: string): HTMLLabelElement {
	return el("label", { htmlFor: `setting-${name}` }, text);
}

function shown(name: NumberSetting, value: number): string {
	const off = (name === "topP" && value >= 1) || (name === "minP" && value <= 0);
	if (off || (name === "repetitionPenalty" && value <= 1)) return "off";
	return value.toFixed(2);
}
