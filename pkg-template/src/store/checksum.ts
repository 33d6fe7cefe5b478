// Checksums: a fast one, which tells damage to what was stored, and SHA-256, which tells the right file.

import { createSHA256, createXXHash64 } from "hash-wasm";

/** The fast checksum of some bytes or of a text, 16 hexadecimal digits (XXH64). */
export type Checksum = (data: Uint8Array | string) => string;

let starting: Promise<Checksum> | undefined;

/** The fast checksum, ready for use. */
export function loadChecksum(): Promise<Checksum> {
	starting ??= createXXHash64().then((hasher) => (data) => hasher.init().update(data).digest("hex"));
	return starting;
}

/** SHA-256 of bytes that come piece by piece. */
export interface Sha256 {
	update(bytes: Uint8Array): void;
	/** 64 hexadecimal digits. */
	digest(): string;
}

/** Starts a digest. */
export async function createSha256(): Promise<Sha256> {
	const hasher = await createSHA256();
	return {
		update: (bytes) => void hasher.update(bytes),
		digest: () => hasher.digest("hex"),
	};
}
