// From rounds to what is reported: medians, and medians of the ratios within each round.

/** The middle value; `undefined` where any is missing. */
export function median(values) {
	if (values.length === 0 || values.includes(undefined)) return undefined;
	const sorted = values.toSorted((a, b) => a - b);
	const middle = Math.floor(sorted.length / 2);
	return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const divide = (a, b) => (a === undefined || b === undefined ? undefined : a / b);

/** Wall and CPU ms a token, and tokens a second. */
function speed(runs, phase) {
	const ms = median(runs.map((run) => run[phase].ms));
	return { ms, tokensPerSecond: 1000 / ms, cpuMs: median(runs.map((run) => run[phase].cpuMs)) };
}

/** What a GPU was given to do for a token of decoding. */
const work = (runs) =>
	Object.fromEntries(
		Object.keys(runs[0].gpu).map((name) => [name, median(runs.map(({ gpu }) => gpu[name]))]),
	);

/** How many times faster `runs` are than `others`. */
function timesFaster(runs, others, phase) {
	const ratio = (key) =>
		median(others.map((other, round) => divide(other[phase][key], runs[round][phase][key])));
	return { wall: ratio("ms"), cpu: ratio("cpuMs") };
}

/** The time of reading a token's weights once, as a share of the time of computing it. */
function shareOfRoofline(runs, reads, tokenBytes) {
	if (tokenBytes === undefined) return undefined;
	const share = (key) =>
		median(
			runs.map((run, round) =>
				divide((reads[round][key] / reads[round].bytes) * tokenBytes, run.decode[key]),
			),
		);
	return { wall: share("ms"), cpu: share("cpuMs") };
}

/** The read bandwidth in GB/s by the clock, and a thread's by its CPU time. */
export function summariseReads(reads) {
	return {
		gbPerSecond: median(reads.map(({ bytes, ms }) => bytes / ms / 1e6)),
		gbPerCpuSecond: median(reads.map(({ bytes, cpuMs }) => (cpuMs ? bytes / cpuMs / 1e6 : undefined))),
	};
}

/**
 * One engine's results on a model.
 *
 * @param tokenBytes the weights that a token reads, where that is known
 * @param first the runs of the engine that the others are compared with; its own give no comparison
 */
export function summariseEngine({ name, loaded }, runs, reads, { fileBytes, tokenBytes, first }) {
	return {
		name,
		...loaded.engine,
		load: {
			ms: loaded.ms,
			mbPerSecond: fileBytes / loaded.ms / 1e3,
			peakBytes: loaded.peakBytes,
			...(loaded.memory && { wasmBytes: loaded.memory.wasm, weightBytes: loaded.memory.weights }),
		},
		decode: speed(runs, "decode"),
		...(runs[0].gpu && { gpu: work(runs) }),
		prefill: speed(runs, "prefill"),
		tokenBytes,
		shareOfRoofline: shareOfRoofline(runs, reads, tokenBytes),
		...(runs !== first && {
			firstIsFaster: {
				decode: timesFaster(first, runs, "decode"),
				prefill: timesFaster(first, runs, "prefill"),
			},
		}),
		rounds: runs,
	};
}
