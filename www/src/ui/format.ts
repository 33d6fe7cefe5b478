/** Numbers as people read them. Sizes use decimal units, as download sizes are usually given. */

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** `3710784` → `3.7 MB` */
export function bytes(count: number): string {
	let value = count;
	let unit = 0;
	while (value >= 999.5 && unit < UNITS.length - 1) {
		value /= 1000;
		unit += 1;
	}
	return `${unit === 0 || value >= 99.5 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** `7353088` → `7.4 million` */
export function count(value: number): string {
	if (value >= 1e9) return `${(value / 1e9).toFixed(1)} billion`;
	if (value >= 1e6) return `${(value / 1e6).toFixed(1)} million`;
	return value.toLocaleString("en");
}

/** Milliseconds → `85 ms`, `1.4 s`, `2 min 5 s` */
export function duration(milliseconds: number): string {
	if (milliseconds < 999.5) return `${Math.max(1, Math.round(milliseconds))} ms`;
	const seconds = milliseconds / 1000;
	if (seconds < 59.5) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
	const whole = Math.round(seconds);
	return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** Tokens a second → `7.3 tokens/s`, `214 tokens/s` */
export function tokenRate(perSecond: number): string {
	return `${perSecond >= 99.5 ? Math.round(perSecond) : perSecond.toFixed(1)} tokens/s`;
}
