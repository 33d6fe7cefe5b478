// CPU time and memory of processes, as Linux counts them. CPU time is what a computation took even where other
// programs held the processor in between, so it says more than the clock on a machine that is shared.
import { readdirSync, readFileSync } from "node:fs";

/** Whether this system tells. */
export const countsProcesses = process.platform === "linux";

const PAGE_BYTES = 4096;
const TICKS_PER_MS = 0.1;

/** `read()`, or `undefined` for what ended while it was being looked at. */
function unlessGone(read) {
	try {
		return read();
	} catch (error) {
		if (error.code === "ENOENT" || error.code === "ESRCH") return undefined;
		throw error;
	}
}

/** Nanoseconds of CPU time of the threads that live, where the kernel counts them. */
function threadNanoseconds(pid) {
	let sum = 0;
	for (const thread of readdirSync(`/proc/${pid}/task`)) {
		const text = unlessGone(() => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8"));
		sum += Number(text?.split(" ")[0] ?? 0);
	}
	return sum;
}

/** Milliseconds of CPU time of a process, in steps of 10. */
function processMilliseconds(pid) {
	const text = readFileSync(`/proc/${pid}/stat`, "utf8");
	// The second field is the program's name in parentheses, which may contain spaces.
	const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
	return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_MS;
}

/** Milliseconds of CPU time that the processes have taken so far. */
export function cpuMilliseconds(pids) {
	const of = (pid) => threadNanoseconds(pid) / 1e6 || processMilliseconds(pid);
	return pids.reduce((sum, pid) => sum + (unlessGone(() => of(pid)) ?? 0), 0);
}

/** Bytes of physical memory that the processes hold. */
export function residentBytes(pids) {
	const of = (pid) => Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
	return pids.reduce((sum, pid) => sum + (unlessGone(() => of(pid)) ?? 0), 0);
}
