/** A button that copies a text and says for a moment whether it worked. */
import { el } from "./dom.ts";

const CONFIRMATION_MS = 1600;

/** Makes the button; `text` is asked for when it is pressed. */
export function copyButton(text: () => string): HTMLButtonElement {
	const button = el("button", { type: "button", className: "action" }, "Copy");
	button.addEventListener("click", async () => {
		button.textContent = (await copied(text())) ? "Copied" : "Could not copy";
		setTimeout(() => {
			button.textContent = "Copy";
		}, CONFIRMATION_MS);
	});
	return button;
}

async function copied(text: string): Promise<boolean> {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}
