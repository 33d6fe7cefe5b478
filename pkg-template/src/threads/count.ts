// How many threads compute.

/** More than this, and the memory, which all of them wait for, is the limit. */
const MOST_BY_ITSELF = 8;

/**
 * How many threads to use of a machine with `cores` logical cores: as many as asked for, but not more than
 * there are, which would only take turns; by itself about as many as there are physical cores, and not all, so
 * that the page keeps one.
 */
export function threadCount(wanted: "auto" | number, cores: number): number {
	if (wanted !== "auto") return Math.max(1, Math.min(wanted, cores));
	if (cores <= 2) return Math.max(1, cores);
	return Math.min(MOST_BY_ITSELF, cores - 1, Math.max(3, cores >> 1));
}
