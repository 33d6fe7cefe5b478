/** Shows how far a load is: what is being read, bytes, rate and the time left. */
import type { LoadProgress } from "sterna";
import { byId } from "../ui/dom.ts";
import { bytes, duration } from "../ui/format.ts";

/** The rate is that of the last seconds, so that a stall shows. */
const WINDOW_MS = 3000;
const STEADY_MS = 400;

export class LoadProgressView {
	readonly #root = byId("load-progress", HTMLElement);
	readonly #label = byId("load-label", HTMLElement);
	readonly #detail = byId("load-detail", HTMLElement);
	readonly #bar = byId("load-bar", HTMLProgressElement);
	#name = "";
	#samples: { time: number; bytes: number }[] = [];

	show(name: string): void {
		this.#name = name;
		this.#samples = [];
		this.#label.textContent = `Loading ${name}`;
		this.#detail.textContent = "";
		this.#bar.removeAttribute("value");
		this.#root.hidden = false;
	}

	hide(): void {
		this.#root.hidden = true;
	}

	update(progress: LoadProgress): void {
		const { phase, loadedBytes, totalBytes, fraction } = progress;
		const downloading = phase === "download";
		this.#label.textContent = downloading ? `Loading ${this.#name}` : `Preparing ${this.#name}`;
		if (fraction === undefined) this.#bar.removeAttribute("value");
		else this.#bar.value = fraction;

		const rate = this.#rate(loadedBytes);
		const parts = [totalBytes ? `${bytes(loadedBytes)} of ${bytes(totalBytes)}` : bytes(loadedBytes)];
		if (downloading && rate > 0) {
			parts.push(`${bytes(rate)}/s`);
			if (totalBytes && totalBytes > loadedBytes)
				parts.push(`${duration(((totalBytes - loadedBytes) / rate) * 1000)} left`);
		}
		this.#detail.textContent = parts.join(" · ");
	}

	/** Bytes a second over the last seconds; 0 while too little has been seen. */
	#rate(loadedBytes: number): number {
		const time = performance.now();
		this.#samples.push({ time, bytes: loadedBytes });
		while (this.#samples.length > 2 && time - (this.#samples[0]?.time ?? time) > WINDOW_MS)
			this.#samples.shift();
		const first = this.#samples[0];
		if (!first || time - first.time < STEADY_MS) return 0;
		return ((loadedBytes - first.bytes) / (time - first.time)) * 1000;
	}
}
