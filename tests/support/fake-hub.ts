// A stand-in for the Hugging Face hub: it lists the files of repositories and serves them at their commit.

import { createHash } from "node:crypto";
import type { TestServer } from "./server.js";

/** A repository: its files by path, the large ones by `large`. */
export interface Repository {
	files: Record<string, Uint8Array | string>;
	/** Paths whose digests the listing tells, as it does for files in large-file storage. */
	large?: string[];
	/** The token that is needed to see it. */
	token?: string;
	/** Digests that are told in place of the right ones. */
	wrongDigests?: Record<string, string>;
	/** In place of {@link COMMIT}. */
	commit?: string;
}

/** The commit that every revision of a repository is. */
export const COMMIT = "0123456789abcdef0123456789abcdef01234567";

/** Serves a repository under the hub's addresses. */
export function serveRepository(
	server: TestServer,
	repo: string,
	{ files, large = [], token, wrongDigests = {}, commit = COMMIT }: Repository,
	revision = "main",
): void {
	const cors = {
		"Access-Control-Allow-Origin": "*",
		"Access-Control-Expose-Headers": "ETag, Content-Range, Accept-Ranges",
	};
	const siblings = Object.entries(files).map(([rfilename, body]) => {
		const sha256 = wrongDigests[rfilename] ?? createHash("sha256").update(body).digest("hex");
		const size = Buffer.byteLength(body);
		return { rfilename, size, ...(large.includes(rfilename) && { lfs: { sha256, size } }) };
	});
	const isAllowed = (authorization: string | undefined) =>
		token === undefined || authorization === `Bearer ${token}`;
	server.routes.set(`/api/models/${repo}/revision/${revision}`, ({ headers }) =>
		isAllowed(headers.authorization)
			? {
					body: JSON.stringify({ id: repo, sha: commit, siblings }),
					headers: { ...cors, "Content-Type": "application/json" },
				}
			: { status: 401, headers: cors },
	);
	for (const [path, body] of Object.entries(files)) {
		server.routes.set(`/${repo}/resolve/${commit}/${path}`, ({ headers }) =>
			isAllowed(headers.authorization)
				? { body, ranges: true, headers: { ...cors, ETag: `"${path}"` } }
				: { status: 401, headers: cors },
		);
	}
}
