/** Questions that the built-in model was trained to answer. */
import { el } from "../ui/dom.ts";

const QUESTIONS = [
	"Hello!",
	"What is your name?",
	"What is the capital of Japan?",
	"How much is 3 plus 4?",
	"What sound does a cow make?",
	"Tell me a story about a fox named Ruby.",
];

/** Fills the list with buttons; returns a function that enables or disables them. */
export function showSuggestions(
	list: HTMLElement,
	onChoice: (question: string) => void,
): (enabled: boolean) => void {
	const buttons = QUESTIONS.map((question) =>
		el(
			"button",
			{ type: "button", className: "suggestion", disabled: true, onclick: () => onChoice(question) },
			question,
		),
	);
	list.replaceChildren(...buttons.map((button) => el("li", {}, button)));
	return (enabled) => {
		for (const button of buttons) button.disabled = !enabled;
	};
}
