// Starts the threads of a model. They end by themselves when the model is freed.

import { InternalError, NetworkError } from "../errors.js";
import type { ThreadReport, ThreadStart } from "./thread.js";

/** A thread's worker, whether a browser's or Node's. */
export interface ThreadWorker {
	/** Called with what the thread reports. */
	onReport(listener: (report: ThreadReport) => void): void;
	/** Called when the worker's script cannot be loaded or run. */
	onError(listener: (message: string) => void): void;
	terminate(): void;
}

/** How long a freed model's threads may take to end, in milliseconds. */
const END_TIMEOUT = 1000;

/** Starts one thread. */
export type StartThread = (start: ThreadStart) => ThreadWorker;

/** The threads of one model, besides the one that its engine runs in. */
export class Team {
	readonly #workers: ThreadWorker[];
	readonly #states: ThreadState[];

	private constructor(workers: ThreadWorker[]) {
		this.#workers = workers;
		this.#states = workers.map(follow);
	}

	/** Starts a thread for each seat, and waits until all work. */
	static async start(starts: ThreadStart[], startThread: StartThread): Promise<Team> {
		const team = new Team(starts.map(startThread));
		try {
			await Promise.all(team.#states.map(({ ready }) => ready));
		} catch (error) {
			team.terminate();
			throw error;
		}
		return team;
	}

	/** Ends the threads at once. Only for when the module's state is lost: they may be within a computation. */
	terminate(): void {
		for (const worker of this.#workers) worker.terminate();
	}

	/**
	 * Waits until the threads of a model that was freed have ended. A worker that ended before those that it had
	 * started would leave them to the browser, which may take its time.
	 */
	async ended(): Promise<void> {
		let timer: ReturnType<typeof setTimeout> | undefined;
		const late = new Promise<"late">((resolve) => {
			timer = setTimeout(resolve, END_TIMEOUT, "late");
		});
		const all = Promise.all(this.#states.map(({ ended }) => ended));
		if ((await Promise.race([all, late])) === "late") this.terminate();
		clearTimeout(timer);
	}
}

interface ThreadState {
	ready: Promise<void>;
	ended: Promise<void>;
}

function follow(worker: ThreadWorker): ThreadState {
	let end = () => {};
	const ended = new Promise<void>((resolve) => {
		end = resolve;
	});
	const ready = new Promise<void>((resolve, reject) => {
		worker.onReport((report) => {
			if (report.type === "ready") resolve();
			else if (report.type === "ended") end();
			else reject(new InternalError(`A thread did not start: ${report.message}. Set 'threads: 1'.`));
		});
		worker.onError((message) =>
			reject(
				new NetworkError(
					`A thread did not start: ${message}. Serve thread.js beside the package's other scripts, or set 'threads: 1'.`,
					"thread.js",
				),
			),
		);
	});
	return { ready, ended };
}
