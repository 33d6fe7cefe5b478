/** The native dialogs: closing by button or by a click on the backdrop. Esc and focus are the browser's. */

/** Wires the close buttons of a dialog and closes it when the backdrop is clicked. */
export function prepareDialog(dialog: HTMLDialogElement): void {
	for (const button of dialog.querySelectorAll("[data-close]")) {
		button.addEventListener("click", () => dialog.close());
	}
	dialog.addEventListener("click", (event) => {
		if (event.target === dialog && isOutside(event, dialog.getBoundingClientRect())) dialog.close();
	});
}

// The backdrop belongs to the dialog element, so only the position tells them apart.
function isOutside(event: MouseEvent, box: DOMRect): boolean {
	return (
		event.clientX < box.left ||
		event.clientX > box.right ||
		event.clientY < box.top ||
		event.clientY > box.bottom
	);
}
