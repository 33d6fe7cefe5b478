// Checks the options that callers give: unknown names are refused rather than ignored, so that a typing
// error, or an option of another version, never goes unnoticed.

import { InvalidArgumentError } from "./errors.js";

/** Tells what is wrong with a value, or `undefined` when it is right. */
export type Rule = (value: unknown) => string | undefined;

/** One of some strings. */
export const oneOf =
	(...allowed: string[]): Rule =>
	(value) =>
		allowed.includes(value as string)
			? undefined
			: `must be ${allowed.map((name) => `"${name}"`).join(" or ")}`;

/** A value of a JavaScript type. */
export const ofType =
	(type: "boolean" | "string" | "function"): Rule =>
	(value) =>
		typeof value === type ? undefined : `must be a ${type}`;

/** A finite number within bounds. */
export const number =
	(min: number, max = Number.MAX_VALUE): Rule =>
	(value) => {
		if (typeof value === "number" && value >= min && value <= max) return undefined;
		return max === Number.MAX_VALUE
			? `must be a number, at least ${min}`
			: `must be a number from ${min} to ${max}`;
	};

/** A whole number within bounds. */
export const integer =
	(min: number, max = Number.MAX_SAFE_INTEGER): Rule =>
	(value) => {
		if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return undefined;
		return max === Number.MAX_SAFE_INTEGER
			? `must be a whole number, at least ${min}`
			: `must be a whole number from ${min} to ${max}`;
	};

/** An array whose items all obey a rule. */
export const listOf =
	(rule: Rule): Rule =>
	(value) => {
		if (!Array.isArray(value)) return "must be an array";
		// A hole in the array counts as an item: `undefined`.
		const problem = Array.from(value, rule).find((found) => found !== undefined);
		return problem && `must be an array in which each item ${problem}`;
	};

/** Any of some rules. */
export const either =
	(...rules: Rule[]): Rule =>
	(value) => {
		const problems = rules.map((rule) => rule(value));
		return problems.includes(undefined) ? undefined : problems.join(", or ");
	};

/** An AbortSignal. */
export const abortSignal: Rule = (value) =>
	value instanceof AbortSignal ? undefined : "must be an AbortSignal";

/** An object whose values all obey a rule. */
export const recordOf =
	(rule: Rule): Rule =>
	(value) => {
		if (typeof value !== "object" || value === null || Array.isArray(value)) return "must be an object";
		for (const [name, item] of Object.entries(value)) {
			const problem = rule(item);
			if (problem) return `must be an object in which '${name}' ${problem}`;
		}
		return undefined;
	};

/** An object with known names, whose values obey a rule each; `undefined` counts as left out. */
export const objectOf =
	(rules: Record<string, Rule>): Rule =>
	(value) => {
		if (typeof value !== "object" || value === null || Array.isArray(value)) return "must be an object";
		for (const [name, item] of Object.entries(value)) {
			const rule = rules[name];
			if (!rule) return `has no '${name}'; it may have: ${Object.keys(rules).join(", ")}`;
			const problem = item === undefined ? undefined : rule(item);
			if (problem) return `is wrong: its '${name}' ${problem}`;
		}
		return undefined;
	};

/** A token id. */
export const tokenId: Rule = integer(0, 2 ** 32 - 1);

/** Refuses options that are unknown or whose value is wrong; `undefined` counts as left out. */
export function checkOptions(call: string, options: object, rules: Record<string, Rule>): void {
	if (typeof options !== "object" || options === null) {
		throw new InvalidArgumentError(`${call}: the options must be an object.`);
	}
	for (const [name, value] of Object.entries(options)) {
		const rule = rules[name];
		if (!rule) {
			const known = Object.keys(rules).join(", ");
			throw new InvalidArgumentError(`${call}: there is no option '${name}'. The options are: ${known}.`);
		}
		const problem = value === undefined ? undefined : rule(value);
		if (problem) throw new InvalidArgumentError(`${call}: the option '${name}' ${problem}.`);
	}
}

/** Token ids, given as any list of numbers. */
export function checkTokenIds(call: string, ids: ArrayLike<number>): Uint32Array {
	if (ids instanceof Uint32Array) return ids;
	const isList = typeof ids === "object" && ids !== null && Number.isInteger(ids.length) && ids.length >= 0;
	if (!isList) throw new InvalidArgumentError(`${call}: token ids must be an array of whole numbers.`);
	// Looked at before anything is allocated: the length may be wrong too.
	for (let i = 0; i < ids.length; i += 1) {
		if (tokenId(ids[i])) throw new InvalidArgumentError(`${call}: ${ids[i]} is not a token id.`);
	}
	return Uint32Array.from(ids);
}

/** Text. */
export function checkText(call: string, text: unknown): string {
	if (typeof text !== "string") throw new InvalidArgumentError(`${call}: the text must be a string.`);
	return text;
}
