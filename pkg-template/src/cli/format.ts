// Numbers as a person reads them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `1536` → `1.5 KiB`. */
export function formatBytes(bytes: number): string {
	const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1);
	const value = bytes / 1024 ** power;
	return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}

/** `134515008` → `134.5 M`. */
export function formatCount(count: number): string {
	if (count < 1e3) return String(count);
	if (count < 1e6) return `${(count / 1e3).toFixed(1)} k`;
	return count < 1e9 ? `${(count / 1e6).toFixed(1)} M` : `${(count / 1e9).toFixed(2)} G`;
}

/** The shortest decimal that reads back as the same f32. */
export function f32Number(value: number): number {
	for (let digits = 6; digits <= 9; digits += 1) {
		const shorter = Number(value.toPrecision(digits));
		if (Math.fround(shorter) === value) return shorter;
	}
	return value;
}

/** Rows of cells, the columns aligned. */
export function formatTable(rows: string[][]): string {
	const widths = rows.reduce<number[]>(
		(widest, row) => row.map((cell, i) => Math.max(widest[i] ?? 0, cell.length)),
		[],
	);
	return rows
		.map((row) =>
			row
				.map((cell, i) => cell.padEnd(widths[i] ?? 0))
				.join("  ")
				.trimEnd(),
		)
		.join("\n");
}
