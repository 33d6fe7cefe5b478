// Files that a person picked or dropped, in whatever form the browser gives them.

import { InvalidArgumentError } from "../errors.js";
import { isWeights, SIDE_FILES } from "./checkpoint.js";

/** What pickers and drops give. */
export type Picked = FileList | DataTransfer | DataTransferItemList | FileSystemHandle;

const isA = (value: unknown, name: string): boolean => {
	const type = (globalThis as Record<string, unknown>)[name];
	return typeof type === "function" && value instanceof type;
};

/** Whether a value is one of the forms. */
export const isPicked = (value: unknown): value is Picked =>
	["FileList", "DataTransfer", "DataTransferItemList", "FileSystemHandle"].some((name) => isA(value, name));

/** Whether a folder's file belongs to a model; the rest of a folder is left alone. */
const belongs = (name: string) => isWeights(name) || SIDE_FILES.includes(name);

/** The files of a folder's handle. Model folders are flat, so deeper folders are not looked at. */
async function directoryFiles(directory: FileSystemDirectoryHandle): Promise<File[]> {
	const files: File[] = [];
	for await (const handle of directory.values()) {
		if (handle.kind === "file" && belongs(handle.name)) files.push(await handle.getFile());
	}
	if (files.length > 0) return files;
	throw new InvalidArgumentError(
		`There is no model in the folder ${directory.name}: choose one with a .gguf file, or with .safetensors files and their config.json.`,
	);
}

function handleFiles(handle: FileSystemHandle): Promise<File[]> {
	if (handle.kind === "directory") return directoryFiles(handle as FileSystemDirectoryHandle);
	return (handle as FileSystemFileHandle).getFile().then((file) => [file]);
}

const entryFile = (entry: FileSystemFileEntry) =>
	new Promise<File>((resolve, reject) => entry.file(resolve, reject));

/** The files of a dropped folder. */
async function entryFiles(folder: FileSystemDirectoryEntry): Promise<File[]> {
	const reader = folder.createReader();
	const files: File[] = [];
	for (;;) {
		// A reader hands out its entries in portions and ends with an empty one.
		const portion = await new Promise<FileSystemEntry[]>((resolve, reject) =>
			reader.readEntries(resolve, reject),
		);
		if (portion.length === 0) return files;
		for (const entry of portion) {
			if (entry.isFile && belongs(entry.name)) files.push(await entryFile(entry as FileSystemFileEntry));
		}
	}
}

/** The files of a drop. The browser empties a drop's data once its event is over, so it is looked at at once. */
function dropFiles(items: DataTransferItemList): Promise<File[]> {
	const found = [...items]
		.filter((item) => item.kind === "file")
		.map((item): Promise<File[]> | File[] => {
			const entry = item.webkitGetAsEntry();
			if (entry?.isDirectory) return entryFiles(entry as FileSystemDirectoryEntry);
			const file = item.getAsFile();
			return file ? [file] : [];
		});
	return Promise.all(found).then((files) => files.flat());
}

/** The files that were picked. */
export function pickFiles(picked: Picked): Promise<File[]> {
	if (isA(picked, "FileList")) return Promise.resolve([...(picked as FileList)]);
	if (isA(picked, "DataTransfer")) return dropFiles((picked as DataTransfer).items);
	if (isA(picked, "DataTransferItemList")) return dropFiles(picked as DataTransferItemList);
	return handleFiles(picked as FileSystemHandle);
}
