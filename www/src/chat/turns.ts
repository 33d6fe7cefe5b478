/** The conversation as data, and the part of it that still fits the model's context. */
import type { Message, Model } from "sterna";

/** One question and what has been answered so far. */
export interface Turn {
	question: string;
	answer: string;
}

export interface FittedPrompt {
	messages: Message[];
	/** How many of the oldest turns were left out. */
	dropped: number;
	/** As much of the wished-for answer as the context has room for. */
	maxTokens: number;
}

/** Tokens left free for what a template adds after counting. */
const MARGIN = 8;
/** An answer may claim at most this share of the context before old turns have to go. */
const ANSWER_SHARE = 0.5;

/** Leaves out the oldest turns until the last question and an answer of a fair length fit the context. */
export async function fitToContext(
	model: Model,
	systemPrompt: string,
	turns: readonly Turn[],
	wantedTokens: number,
): Promise<FittedPrompt> {
	const { contextLength } = model.info;
	const enough = Math.min(wantedTokens, Math.floor(contextLength * ANSWER_SHARE));
	for (let dropped = 0; ; dropped += 1) {
		const messages = toMessages(systemPrompt, turns.slice(dropped));
		const room = contextLength - MARGIN - (await model.countTokens(messages));
		// A last question that is too long by itself goes to the engine, whose error has the numbers.
		if (room >= enough || dropped >= turns.length - 1) {
			return { messages, dropped, maxTokens: Math.max(1, Math.min(wantedTokens, room)) };
		}
	}
}

function toMessages(systemPrompt: string, turns: readonly Turn[]): Message[] {
	const messages: Message[] = [];
	const system = systemPrompt.trim();
	if (system) messages.push({ role: "system", content: system });
	for (const [index, { question, answer }] of turns.entries()) {
		const isLast = index === turns.length - 1;
		if (!isLast && !answer) continue; // stopped before its first word
		messages.push({ role: "user", content: question });
		if (!isLast) messages.push({ role: "assistant", content: answer });
	}
	return messages;
}
