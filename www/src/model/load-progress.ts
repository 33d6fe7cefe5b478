/** Shows how far a load is: what is being read, bytes, rate and the time left. */
import type { LoadProgress } from "sterna";
import { byId } from "../ui/dom.ts";
import { bytes, duration } from "../ui/format.ts";

const PHASES: Readonly<Record<LoadProgress["phase"], string>> = {
	prepare: "Loading",
	wait: "Another tab downloads",
	download: "Downloading",
	read: "Reading",
	load: "Preparing",
	ready: "Preparing",
};

export class LoadProgressView {
	readonly #root = byId("load-progress", HTMLElement);
	readonly #label = byId("load-label", HTMLElement);
	readonly #detail = byId("load-detail", HTMLElement);
	readonly #bar = byId("load-bar", HTMLProgressElement);
	readonly #pause = byId("pause-load", HTMLButtonElement);
	#name = "";

	show(name: string): void {
		this.#name = name;
		this.#label.textContent = `Loading ${name}`;
		this.#detail.textContent = "";
		this.#bar.removeAttribute("value");
		this.#pause.textContent = "Pause";
		this.#root.hidden = false;
	}

	hide(): void {
		this.#root.hidden = true;
	}

	update(progress: LoadProgress): void {
		const { phase, fraction, isPaused, notice } = progress;
		this.#label.textContent = isPaused ? `${this.#name} is paused` : `${PHASES[phase]} ${this.#name}`;
		this.#pause.textContent = isPaused ? "Resume" : "Pause";
		if (fraction === undefined) this.#bar.removeAttribute("value");
		else this.#bar.value = fraction;
		this.#detail.textContent = details(progress);
		this.#detail.title = notice?.message ?? this.#detail.title;
	}
}

function details(progress: LoadProgress): string {
	const { loadedBytes, totalBytes, bytesPerSecond, remainingTime, notice } = progress;
	if (notice?.code === "retrying") return "The connection broke off; trying again";
	const parts = [totalBytes ? `${bytes(loadedBytes)} of ${bytes(totalBytes)}` : bytes(loadedBytes)];
	if (bytesPerSecond) parts.push(`${bytes(bytesPerSecond)}/s`);
	if (remainingTime) parts.push(`${duration(remainingTime)} left`);
	return parts.join(" · ");
}
