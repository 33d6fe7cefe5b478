/** What a visitor can name as a model (the built-in one, a URL, files) and how the page calls it. */
import type { ModelSource } from "sterna";

export interface NamedSource {
	/** Short name for the header and for messages. */
	name: string;
	source: ModelSource;
}

/** The files of a model folder that a loader can use; the rest of a dropped folder is left alone. */
const MODEL_FILE = /\.(gguf|safetensors|json|jinja|model)$|(^|\/)(merges|vocab)\.txt$/i;
const WEIGHTS_FILE = /\.(gguf|safetensors)$/i;

/** The model that the build copies beside the page. */
export function embeddedModel(): NamedSource {
	return { name: "bit-7m", source: new URL("models/bit-7m/", document.baseURI).href };
}

/** A typed address, absolute or relative to the page; `undefined` where it is none. */
export function fromAddress(typed: string): NamedSource | undefined {
	const text = typed.trim();
	if (!text || !URL.canParse(text, document.baseURI)) return undefined;
	const url = new URL(text, document.baseURI);
	if (url.protocol === "hf:") return { name: nameOf(text), source: text };
	if (!/^(https?|blob|data):$/.test(url.protocol)) return undefined;
	return { name: nameOf(url.href), source: url.href };
}

/** What the page calls the model behind an address. */
export function nameOf(source: string): string {
	if (source.startsWith("hf:")) return source.slice("hf:".length).replace(/@main$/, "");
	const url = new URL(source);
	return lastPart(url.pathname) || url.host;
}

/** Files that were chosen or dropped, and the folder that they came in. */
export interface PickedFiles {
	files: readonly File[];
	folder?: string;
}

/** Picked files as a model; `undefined` where none of them holds weights. */
export function fromFiles({ files, folder }: PickedFiles): NamedSource | undefined {
	const usable = files.filter((file) => MODEL_FILE.test(file.name));
	const weights = usable.find((file) => WEIGHTS_FILE.test(file.name));
	if (!weights) return undefined;
	const chosenFolder = weights.webkitRelativePath.split("/").at(-2);
	return { name: folder ?? chosenFolder ?? weights.name, source: usable };
}

/**
 * The files of a drop, those inside dropped folders included. Must be called while the drop event is being
 * handled: the browser empties its data afterwards.
 */
export async function droppedFiles(data: DataTransfer): Promise<PickedFiles> {
	const plain = [...data.files];
	const entries = [...data.items].map((item) => item.webkitGetAsEntry());
	const folders = entries.filter((entry) => entry?.isDirectory) as FileSystemDirectoryEntry[];
	if (folders.length === 0) return { files: plain };
	const loose = entries.filter((entry) => entry?.isFile) as FileSystemFileEntry[];
	const files = await Promise.all([...loose, ...(await folderContents(folders))].map(readFile));
	return { files, folder: folders[0]?.name };
}

// Model folders are flat, so one level is all that is looked at.
async function folderContents(folders: FileSystemDirectoryEntry[]): Promise<FileSystemFileEntry[]> {
	const lists = await Promise.all(folders.map(readEntries));
	return lists.flat().filter((entry) => entry.isFile) as FileSystemFileEntry[];
}

async function readEntries(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
	const reader = folder.createReader();
	const all: FileSystemEntry[] = [];
	for (;;) {
		// A reader hands out its entries in portions and ends with an empty one.
		const portion = await new Promise<FileSystemEntry[]>((resolve, reject) =>
			reader.readEntries(resolve, reject),
		);
		if (portion.length === 0) return all;
		all.push(...portion);
	}
}

function readFile(entry: FileSystemFileEntry): Promise<File> {
	return new Promise((resolve, reject) => entry.file(resolve, reject));
}

function lastPart(path: string): string {
	const part = path.split("/").filter(Boolean).at(-1) ?? "";
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}
