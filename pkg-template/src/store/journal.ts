// The journal of a stored file: what it is, which of its blocks are stored, whether it is complete. Records are
// only ever appended, each after the bytes that it speaks of were made durable. Every line starts with a
// checksum over itself and the line before, so that neither a torn end nor the remains of an older journal
// are ever taken for records.

import type { Checksum } from "./checksum.js";

/** Names the format; a journal of another one is not read. */
const FORMAT = 1;

/** The first record: what the file is. */
export interface FileRecord {
	kind: "file";
	format: number;
	/** The model that the file belongs to: what a caller gave as its source. */
	model: string;
	/** The bare name. */
	name: string;
	/** Where it came from. */
	url: string;
	/** What told the server's version of it. */
	etag?: string;
	lastModified?: string;
	size?: number;
	/** What the whole file's SHA-256 has to be, in hexadecimal. */
	sha256?: string;
	/** When it was begun, in milliseconds since 1970. */
	created: number;
	/** It is not one of the model's files, but tells of them. */
	isAuxiliary?: boolean;
}

/** The first record of a file that the server does not have. */
export interface AbsentRecord {
	kind: "absent";
	format: number;
	model: string;
	name: string;
	url: string;
	created: number;
}

/** A block is stored; a later record of the same block takes its place. */
export interface BlockRecord {
	kind: "block";
	index: number;
	length: number;
	sum: string;
}

/** All blocks are stored, and the file's digest, where one was expected, is right. */
export interface EndRecord {
	kind: "end";
	size: number;
}

export type JournalRecord = FileRecord | AbsentRecord | BlockRecord | EndRecord;
export type HeadRecord = FileRecord | AbsentRecord;

/** The head of a new journal. */
export const fileRecord = (file: Omit<FileRecord, "kind" | "format">): FileRecord => ({
	kind: "file",
	format: FORMAT,
	...file,
});

/** The head of a journal that only says that there is no file. */
export const absentRecord = (file: Omit<AbsentRecord, "kind" | "format">): AbsentRecord => ({
	kind: "absent",
	format: FORMAT,
	...file,
});

const NEWLINE = 10;

/** Reads and continues a journal. */
export class Journal {
	readonly #checksum: Checksum;
	/** The checksum of the latest line. */
	#chain = "";

	constructor(checksum: Checksum) {
		this.#checksum = checksum;
	}

	/**
	 * The records of a journal up to the first line that is not whole, and how many bytes they take. What is
	 * encoded afterwards continues after them.
	 */
	decode(bytes: Uint8Array): { records: JournalRecord[]; length: number } {
		const records: JournalRecord[] = [];
		const decoder = new TextDecoder();
		this.#chain = "";
		let start = 0;
		for (;;) {
			const end = bytes.indexOf(NEWLINE, start);
			if (end < 0) break;
			const line = decoder.decode(bytes.subarray(start, end));
			const [sum, json] = [line.slice(0, 16), line.slice(17)];
			if (sum !== this.#checksum(this.#chain + json)) break;
			const record = JSON.parse(json) as JournalRecord;
			if (start === 0 && (record as HeadRecord).format !== FORMAT) break;
			records.push(record);
			this.#chain = sum;
			start = end + 1;
		}
		return { records, length: start };
	}

	/** The lines of further records. */
	encode(records: JournalRecord[]): Uint8Array {
		let text = "";
		for (const record of records) {
			const json = JSON.stringify(record);
			this.#chain = this.#checksum(this.#chain + json);
			text += `${this.#chain} ${json}\n`;
		}
		return new TextEncoder().encode(text);
	}
}
