/** The page about the built-in model, shown in a dialog; its text is the project's own document. */
import { MarkdownView } from "../chat/markdown.ts";
import { prepareDialog } from "./dialogs.ts";
import { byId } from "./dom.ts";

export function prepareAbout(): void {
	const dialog = byId("about", HTMLDialogElement);
	const text = byId("about-text", HTMLElement);
	prepareDialog(dialog);
	byId("open-about", HTMLButtonElement).addEventListener("click", async () => {
		dialog.showModal();
		if (text.childElementCount > 0) return;
		const { default: document } = await import("../../../docs/models/bit-7m.md?raw");
		const view = new MarkdownView({ lineBreaks: false });
		view.update(withoutTitle(document));
		text.replaceChildren(view.element);
	});
}

// The dialog has its own heading.
function withoutTitle(markdown: string): string {
	return markdown.replace(/^# .*\n+/, "");
}
