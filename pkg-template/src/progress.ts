// How far a load is, put together from what its parts report, and told not too often.

import type { AccessWatch } from "./files/access.js";
import type { Gate } from "./net/gate.js";
import type { LoadNotice, LoadProgress } from "./types.js";

/** The least time between two reports of one phase, in milliseconds. */
const REPORT_INTERVAL = 50;

/** Rates are those of the last seconds, so that a stall shows. */
const RATE_WINDOW = 4000;
const RATE_STEADY = 300;

/** Bytes over the network in the last seconds. */
class Rate {
	#samples: { time: number; bytes: number }[] = [];
	#bytes = 0;

	add(count: number): void {
		this.#bytes += count;
		const time = performance.now();
		const last = this.#samples.at(-1);
		if (last && time - last.time < REPORT_INTERVAL) return;
		this.#samples.push({ time, bytes: this.#bytes });
		this.#forget(time);
	}

	get bytes(): number {
		return this.#bytes;
	}

	/** Bytes a second; `undefined` while too little has come to tell. */
	get perSecond(): number | undefined {
		const time = performance.now();
		this.#forget(time);
		const [first] = this.#samples;
		if (!first || time - first.time < RATE_STEADY) return undefined;
		return ((this.#bytes - first.bytes) / (time - first.time)) * 1000;
	}

	#forget(time: number): void {
		while (this.#samples.length > 1 && time - this.#samples[0]!.time > RATE_WINDOW) this.#samples.shift();
	}
}

/** Collects what happens in a load and reports it. */
export class ProgressMeter implements AccessWatch {
	readonly gate: Gate | undefined;
	readonly #report: ((progress: LoadProgress) => void) | undefined;
	readonly #rate = new Rate();
	#phase: LoadProgress["phase"] = "prepare";
	#file: string | undefined;
	#loaded = 0;
	#total: number | undefined;
	#cached = 0;
	#reported = Number.NEGATIVE_INFINITY;
	#wait: { loadedBytes: number; totalBytes?: number } | undefined;

	constructor(report: ((progress: LoadProgress) => void) | undefined, gate?: Gate) {
		this.#report = report;
		this.gate = gate;
		gate?.onChange(() => this.#tell());
	}

	/** Begins to count anew. */
	restart(): void {
		this.#loaded = 0;
		this.#cached = 0;
		this.#total = undefined;
		this.enter("prepare");
	}

	get loaded(): number {
		return this.#loaded;
	}

	/** Bytes that need not come over the network. */
	addCached(bytes: number): void {
		this.#cached += bytes;
	}

	/** Sets the total, from the sizes of everything that is left; one unknown size makes it unknown. */
	remaining(sizes: (number | undefined)[]): void {
		this.#total = sizes.reduce<number | undefined>(
			(total, size) => (total === undefined || size === undefined ? undefined : total + size),
			this.#loaded,
		);
	}

	advance(bytes: number): void {
		this.#loaded += bytes;
		this.#tellSometimes();
	}

	enter(phase: LoadProgress["phase"], file?: string): void {
		this.#wait = undefined;
		this.#phase = phase;
		this.#file = file;
		this.#tell();
	}

	onBytes = (count: number): void => {
		this.#rate.add(count);
		// Bytes that go to the store ahead of the engine count as progress of the download.
		this.#tellSometimes();
	};

	onNotice = (notice: LoadNotice): void => this.#tell(notice);

	onWait = (progress: { loadedBytes: number; totalBytes?: number } | undefined): void => {
		this.#wait = progress ?? { loadedBytes: 0 };
		this.#tell();
	};

	#tellSometimes(): void {
		if (performance.now() - this.#reported >= REPORT_INTERVAL) this.#tell();
	}

	#tell(notice?: LoadNotice): void {
		this.#reported = performance.now();
		this.#report?.({ ...this.#state(), ...(notice && { notice }) });
	}

	#state(): LoadProgress {
		const isPaused = this.gate?.isPaused ?? false;
		const common = {
			cachedBytes: this.#cached,
			isPaused,
			...(this.#file !== undefined && { file: this.#file }),
		};
		if (this.#wait) {
			const { loadedBytes, totalBytes } = this.#wait;
			return { phase: "wait", ...common, loadedBytes, ...fractionOf(loadedBytes, totalBytes) };
		}
		// A server may have said less than it sent; a fraction above 1 would help nobody.
		const total = this.#total === undefined ? undefined : Math.max(this.#total, this.#loaded);
		return {
			phase: this.#phase,
			...common,
			loadedBytes: this.#loaded,
			...fractionOf(this.#loaded, total),
			...(total ? { cachedFraction: Math.min(1, this.#cached / total) } : {}),
			...(this.#phase === "ready" && { fraction: 1 }),
			...(this.#phase === "download" && !isPaused && this.#speed(total)),
		};
	}

	#speed(total: number | undefined): Pick<LoadProgress, "bytesPerSecond" | "remainingTime"> {
		const bytesPerSecond = this.#rate.perSecond;
		if (bytesPerSecond === undefined) return {};
		const left = total === undefined ? undefined : Math.max(0, total - this.#cached - this.#rate.bytes);
		if (left === undefined || bytesPerSecond === 0) return { bytesPerSecond };
		return { bytesPerSecond, remainingTime: (left / bytesPerSecond) * 1000 };
	}
}

const fractionOf = (loaded: number, total: number | undefined) =>
	total === undefined
		? {}
		: { totalBytes: total, ...(total > 0 && { fraction: Math.min(1, loaded / total) }) };
