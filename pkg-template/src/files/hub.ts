// Models on the Hugging Face hub: asks it which files a repository has at a revision, picks those of one model,
// and takes their digests along.
//
// https://huggingface.co/docs/hub/api#get-apimodelsrepoid-or-apimodelsrepoidrevisionrevision

import { CorruptFileError, InvalidArgumentError, NetworkError, UnsupportedFormatError } from "../errors.js";
import type { Access } from "./access.js";
import {
	type Checkpoint,
	type CheckpointFile,
	fileSet,
	INDEX_FILE,
	isWeights,
	readSideFile,
	SIDE_FILES,
	shardNames,
} from "./checkpoint.js";
import type { HubReference } from "./hub-reference.js";

/** A file of a repository. */
export interface HubFile {
	/** Its path in the repository. */
	path: string;
	size?: number;
	/** SHA-256 in hexadecimal, of files in large-file storage. */
	sha256?: string;
}

interface Listing {
	/** The commit that the revision is. */
	commit: string;
	files: HubFile[];
}

const isDigest = (value: unknown): value is string =>
	typeof value === "string" && /^[0-9a-f]{64}$/.test(value);

/** The listing in an answer of the hub; what is not as it should be is left out or refused. */
export function parseListing(json: string, url: string): Listing {
	let answer: { sha?: unknown; siblings?: unknown };
	try {
		answer = JSON.parse(json);
	} catch (cause) {
		throw new CorruptFileError(`${url} did not give the list of the repository's files.`, { cause });
	}
	if (typeof answer?.sha !== "string" || !Array.isArray(answer.siblings)) {
		throw new CorruptFileError(`${url} did not give the list of the repository's files.`);
	}
	const files = answer.siblings.flatMap((sibling): HubFile[] => {
		const { rfilename, size, lfs } = sibling ?? {};
		if (typeof rfilename !== "string") return [];
		const sha256 = isDigest(lfs?.sha256) ? lfs.sha256 : undefined;
		return [{ path: rfilename, size: Number.isSafeInteger(size) ? size : undefined, sha256 }];
	});
	return { commit: answer.sha, files };
}

const parts = (path: string) => {
	const cut = path.lastIndexOf("/") + 1;
	return { folder: path.slice(0, cut), name: path.slice(cut) };
};

/** Ternary encodings first, then what is small and exact enough. */
const GGUF_ORDER = [
	/i2_s/i,
	/tq2_0/i,
	/tq1_0/i,
	/ptq1_0|pq2_0|q2_0/i,
	/q1_0/i,
	/q8_0/i,
	/q4_k|q4_0|q4_1/i,
	/q6_k/i,
	/bf16|f16/i,
];
const TERNARY_RANKS = 5;

/** Files beside models that are GGUF too, but no models. */
const NO_MODEL = /mmproj|imatrix/i;

const rank = (path: string) => {
	const found = GGUF_ORDER.findIndex((pattern) => pattern.test(path));
	return found < 0 ? GGUF_ORDER.length : found;
};

/** The path of the weights that a repository's model is loaded from, where the caller named none. */
export function pickWeights(files: HubFile[]): string | undefined {
	const paths = files.map(({ path }) => path);
	const ggufs = paths
		.filter((path) => /\.gguf$/i.test(path) && !NO_MODEL.test(path))
		.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
	const [best] = ggufs;
	if (best !== undefined && rank(best) < TERNARY_RANKS) return best;
	if (paths.includes("config.json")) {
		const single =
			paths.find((path) => path === INDEX_FILE) ?? paths.find((path) => path === "model.safetensors");
		const other = single ?? paths.find((path) => /^[^/]*\.safetensors$/.test(path));
		if (other !== undefined) return other;
	}
	return best;
}

/** The repository's file list; `undefined` in place of an answer ends in an error that says what to do. */
async function list(
	{ repo, revision }: HubReference,
	access: Access,
	signal: AbortSignal | undefined,
): Promise<Listing> {
	const { endpoint, token } = access.settings.hub;
	const url = `${endpoint}/api/models/${repo}/revision/${encodeURIComponent(revision)}?blobs=true`;
	try {
		const file = access.file({ name: "files of the repository", urls: [url], isVolatile: true });
		const { bytes } = await readSideFile(file, signal);
		return parseListing(new TextDecoder().decode(bytes), url);
	} catch (error) {
		if (!(error instanceof NetworkError)) throw error;
		const isLocked = error.status === 401 || error.status === 403;
		if (!isLocked && error.status !== 404) throw error;
		const login =
			token === undefined
				? "if it is private or gated, give an access token as 'hfToken'"
				: "the token of 'hfToken' may not read it; a gated model's terms must be accepted on its page first";
		throw new NetworkError(
			`The hub has no model ${repo} at the revision '${revision}', or does not show it: check the name; ${login}. (HTTP status ${error.status})`,
			url,
			{ cause: error, status: error.status },
		);
	}
}

/** Opens a model on the hub. */
export async function openHub(
	reference: HubReference,
	access: Access,
	signal: AbortSignal | undefined,
): Promise<Checkpoint> {
	const { repo } = reference;
	const { commit, files } = await list(reference, access, signal);
	const chosen = reference.file === undefined ? pickWeights(files) : namedFile(files, reference.file);
	if (chosen === undefined) {
		throw new UnsupportedFormatError(
			`There is no model that Sterna can load in ${repo}: it has neither GGUF files nor safetensors with a config.json.`,
		);
	}
	const { folder, name } = parts(chosen);
	const beside = files.filter(({ path }) => parts(path).folder === folder);
	const open = (file: HubFile): CheckpointFile => {
		const path = file.path.split("/").map(encodeURIComponent).join("/");
		const url = `${access.settings.hub.endpoint}/${repo}/resolve/${commit}/${path}`;
		const { size, sha256 } = file;
		return access.file({ name: parts(file.path).name, urls: [url], size, sha256, isImmutable: true });
	};
	if (/\.gguf$/i.test(name)) {
		const wanted = shardNames(name) ?? [name];
		return fileSet(beside.filter((file) => wanted.includes(parts(file.path).name)).map(open), name);
	}
	const usable = beside.filter(({ path }) => {
		const file = parts(path).name;
		return SIDE_FILES.includes(file) || isWeights(file);
	});
	const weights = name === INDEX_FILE ? undefined : name;
	const withoutIndex = usable.filter(({ path }) => weights === undefined || parts(path).name !== INDEX_FILE);
	return fileSet(withoutIndex.map(open), weights);
}

/** The path that a caller named: a file, or a folder, of which the model is picked. */
function namedFile(files: HubFile[], named: string): string {
	const file = files.find(({ path }) => path === named);
	if (file && (isWeights(named) || parts(named).name === INDEX_FILE)) return named;
	const folder = `${named}/`;
	const inside = files.filter(({ path }) => path.startsWith(folder));
	const picked = pickWeights(inside.map((file) => ({ ...file, path: file.path.slice(folder.length) })));
	if (picked !== undefined) return folder + picked;
	const known = files.map(({ path }) => path).filter(isWeights);
	const shown = known.slice(0, 12).join(", ") || "none";
	throw new InvalidArgumentError(
		`${named} is not a file of weights in this repository. Its weights are: ${shown}${known.length > 12 ? " …" : ""}.`,
	);
}
