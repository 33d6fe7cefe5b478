// Checks the bytes of a file against its digest while they pass.

import { IntegrityMismatchError } from "../errors.js";
import { createSha256, type Sha256 } from "./checksum.js";

/** Takes a file's bytes in order and tells whether they are the right ones. */
export class Verifier {
	readonly #name: string;
	readonly #expected: string;
	readonly #digest: Sha256;
	#found: string | undefined;

	constructor(name: string, expected: string, digest: Sha256) {
		this.#name = name;
		this.#expected = expected;
		this.#digest = digest;
	}

	update(bytes: Uint8Array): void {
		this.#digest.update(bytes);
	}

	/** Whether the bytes were the right ones, after all of them. */
	isRight(): boolean {
		this.#found ??= this.#digest.digest();
		return this.#found === this.#expected;
	}

	/** The error for bytes that were not. */
	mismatch(): IntegrityMismatchError {
		return new IntegrityMismatchError(
			`${this.#name} is not the file that was expected: its SHA-256 is ${this.#found}, not ${this.#expected}. Load the model again; if this stays, the server has another file, or 'integrity' has another file's digest.`,
		);
	}
}

/** A verifier, where there is a digest to check against. */
export async function startVerifier(name: string, sha256: string | undefined): Promise<Verifier | undefined> {
	return sha256 === undefined ? undefined : new Verifier(name, sha256, await createSha256());
}
