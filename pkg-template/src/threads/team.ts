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

/** Starts one thread. */
export type StartThread = (start: ThreadStart) => ThreadWorker;

/** The threads of one model, besides the one that its engine runs in. */
export class Team {
	readonly #workers: ThreadWorker[];

	private constructor(workers: ThreadWorker[]) {
		this.#workers = workers;
	}

	/** Starts a thread for each seat, and waits until all work. */
	static async start(starts: ThreadStart[], startThread: StartThread): Promise<Team> {
		const workers = starts.map(startThread);
		const team = new Team(workers);
		try {
			await Promise.all(workers.map(ready));
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
}

function ready(worker: ThreadWorker): Promise<void> {
	return new Promise((resolve, reject) => {
		worker.onReport((report) => {
			if (report.type === "ready") resolve();
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
}
