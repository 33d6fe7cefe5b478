// Starts the threads of a model, and ends them.

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

/** How long a freed model's threads may take to leave it, in milliseconds. */
const LEAVE_TIMEOUT = 1000;

/** What the browser needs to end the workers of threads, in milliseconds. */
const END_TIME = 100;

const after = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

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

	/** Ends the threads at once: they may be within a computation unless the model was freed. */
	terminate(): void {
		for (const worker of this.#workers) worker.terminate();
	}

	/**
	 * Ends the workers of a model's threads, once the model was freed and they have left it. Chromium never ends a
	 * worker whose own workers are just closing, nor those: they have to be gone before it is ended.
	 */
	async end(): Promise<void> {
		if (this.#workers.length === 0) return;
		const all = Promise.all(this.#states.map(({ left }) => left));
		await Promise.race([all, after(LEAVE_TIMEOUT)]);
		this.terminate();
		await after(END_TIME);
	}
}

interface ThreadState {
	ready: Promise<void>;
	left: Promise<void>;
}

function follow(worker: ThreadWorker): ThreadState {
	let leave = () => {};
	const left = new Promise<void>((resolve) => {
		leave = resolve;
	});
	const ready = new Promise<void>((resolve, reject) => {
		worker.onReport((report) => {
			if (report.type === "ready") resolve();
			else if (report.type === "left") leave();
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
	return { ready, left };
}
