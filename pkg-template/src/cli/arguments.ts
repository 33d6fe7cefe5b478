// Reads the values of command-line options.

import { InvalidArgumentError as WrongUsage } from "commander";

/** A number within bounds. */
export const numberOption =
	(min: number, max = Number.POSITIVE_INFINITY) =>
	(text: string): number => {
		const value = text.trim() === "" ? Number.NaN : Number(text);
		if (value >= min && value <= max) return value;
		throw new WrongUsage(
			max === Number.POSITIVE_INFINITY
				? `It must be a number, at least ${min}.`
				: `It must be a number from ${min} to ${max}.`,
		);
	};

/** A whole number, at least `min`. */
export const integerOption =
	(min: number) =>
	(text: string): number => {
		const value = text.trim() === "" ? Number.NaN : Number(text);
		if (Number.isSafeInteger(value) && value >= min) return value;
		throw new WrongUsage(`It must be a whole number, at least ${min}.`);
	};

/** Token ids separated by commas. */
export function idsOption(text: string): number[] {
	const ids = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
	if (ids.every((id) => Number.isInteger(id) && id >= 0 && id < 2 ** 32)) return ids;
	throw new WrongUsage("They must be whole numbers separated by commas, for example 1,2,3.");
}
