/** What the visitor can set for an answer: limits, defaults, and keeping it over visits. */
import { readStored, writeStored } from "../ui/storage.ts";

const STORAGE_KEY = "sterna.settings";

export interface Settings {
	temperature: number;
	topP: number;
	topK: number;
	minP: number;
	repetitionPenalty: number;
	maxTokens: number;
	/** `null` draws a new seed for every answer. */
	seed: number | null;
	systemPrompt: string;
}

export type NumberSetting = Exclude<keyof Settings, "systemPrompt">;

export interface Limits {
	min: number;
	max: number;
	step: number;
}

export const LIMITS: Readonly<Record<NumberSetting, Limits>> = {
	temperature: { min: 0, max: 2, step: 0.05 },
	topP: { min: 0.05, max: 1, step: 0.05 },
	topK: { min: 0, max: 1000, step: 1 },
	minP: { min: 0, max: 0.5, step: 0.01 },
	repetitionPenalty: { min: 1, max: 2, step: 0.05 },
	maxTokens: { min: 1, max: 8192, step: 1 },
	seed: { min: 0, max: 4294967295, step: 1 },
};

export const DEFAULTS: Readonly<Settings> = {
	temperature: 0.7,
	topP: 0.9,
	topK: 0,
	minP: 0,
	repetitionPenalty: 1,
	maxTokens: 512,
	seed: null,
	systemPrompt: "",
};

/** `value` brought into the limits of the setting; `undefined` where it is no number. */
export function withinLimits(name: NumberSetting, value: number): number | undefined {
	if (!Number.isFinite(value)) return undefined;
	const { min, max, step } = LIMITS[name];
	const clamped = Math.min(max, Math.max(min, value));
	return step === 1 ? Math.round(clamped) : clamped;
}

/** The settings of the last visit; whatever is missing or damaged there has its default. */
export function loadSettings(): Settings {
	const stored = readStored(STORAGE_KEY);
	const settings: Settings = { ...DEFAULTS };
	if (typeof stored !== "object" || stored === null) return settings;

	const values = stored as Record<string, unknown>;
	for (const name of Object.keys(LIMITS) as NumberSetting[]) {
		const value = values[name];
		if (typeof value === "number") settings[name] = withinLimits(name, value) ?? (DEFAULTS[name] as number);
	}
	if (typeof values.systemPrompt === "string") settings.systemPrompt = values.systemPrompt;
	return settings;
}

export function saveSettings(settings: Settings): void {
	writeStored(STORAGE_KEY, settings);
}
