/** Takes model files dropped anywhere on the page, and shows that it will. */
import { droppedFiles, type PickedFiles } from "./sources.ts";

export function acceptDrops(overlay: HTMLElement, onFiles: (picked: PickedFiles) => void): void {
	// Entering a child fires before leaving its parent, so the depth tells when the pointer left the page.
	let depth = 0;
	const show = (visible: boolean) => {
		if (!visible) depth = 0;
		overlay.hidden = !visible;
		// An open dialog covers the overlay, so its own drop zone lights up too.
		document.documentElement.classList.toggle("dragging", visible);
	};

	window.addEventListener("dragenter", (event) => {
		if (!carriesFiles(event)) return;
		event.preventDefault();
		depth += 1;
		show(true);
	});
	window.addEventListener("dragleave", (event) => {
		if (!carriesFiles(event)) return;
		depth -= 1;
		if (depth <= 0) show(false);
	});
	window.addEventListener("dragover", (event) => {
		if (carriesFiles(event)) event.preventDefault();
	});
	window.addEventListener("drop", async (event) => {
		if (!event.dataTransfer || !carriesFiles(event)) return;
		event.preventDefault();
		show(false);
		onFiles(await droppedFiles(event.dataTransfer));
	});
}

function carriesFiles(event: DragEvent): boolean {
	return event.dataTransfer?.types.includes("Files") ?? false;
}
