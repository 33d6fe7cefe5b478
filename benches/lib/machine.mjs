// Names the machine, without which a time means nothing; and keeps some of its processors busy, where that is
// what is measured.
import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";
import { Worker } from "node:worker_threads";

/** What the times depend on. */
export function describeMachine(browserVersion) {
	return {
		cpu: cpus()[0]?.model ?? "unknown",
		cores: availableParallelism(),
		memoryBytes: totalmem(),
		system: `${platform()} ${release()} ${arch()}`,
		browser: `Chromium ${browserVersion}`,
		node: process.version,
		// Of the last minute; 0 where the system does not tell.
		load: loadavg()[0],
	};
}

/** Starts `count` threads that compute until the returned function is called. */
export function keepBusy(count) {
	const workers = Array.from({ length: count }, () => new Worker("for (;;);", { eval: true }));
	return () => Promise.all(workers.map((worker) => worker.terminate()));
}
