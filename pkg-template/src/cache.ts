// The public view of stored models: what there is, how much room it takes, and getting rid of it.

import { InvalidArgumentError } from "./errors.js";
import { type CheckStored, checkHere } from "./store/check.js";
import { allStores } from "./store/open-store.js";
import { type Store, type Stored, slotOf } from "./store/store.js";
import type { CachedFile, CachedModel, CacheReport } from "./types.js";
import { abortSignal, checkOptions, ofType } from "./validate.js";

/** A stored file and the store that it lies in. */
interface Located extends Stored {
	store: Store;
}

const storedBytes = ({ state }: Stored) =>
	[...state.blocks.values()].reduce((sum, { length }) => sum + length, 0);

/** Everything that is stored, damaged beginnings left out. */
async function locateAll(): Promise<Located[]> {
	const found: Located[] = [];
	for (const store of await allStores()) {
		for (const name of await store.backend.list()) {
			const state = await store.look(name);
			if (state) found.push({ store, name, state });
		}
	}
	return found;
}

const isFile = ({ state: { head } }: Stored) => head.kind === "file" && !head.isAuxiliary;

function describeFile({ store, state, ...rest }: Located): CachedFile {
	const { head, completeSize } = state;
	const { size, sha256 } = head.kind === "file" ? head : { size: undefined, sha256: undefined };
	return {
		name: head.name,
		url: head.url,
		storedBytes: storedBytes({ state, ...rest }),
		size: completeSize ?? size,
		isComplete: completeSize !== undefined,
		sha256,
		backend: store.backend.kind,
	};
}

function describeModel(source: string, located: Located[]): CachedModel {
	const files = located.map(describeFile);
	const sizes = files.map(({ size }) => size);
	return {
		source,
		files,
		storedBytes: files.reduce((sum, file) => sum + file.storedBytes, 0),
		totalBytes: sizes.includes(undefined) ? undefined : sizes.reduce<number>((sum, size) => sum + size!, 0),
		isComplete: files.every(({ isComplete }) => isComplete),
		created: new Date(Math.min(...located.map(({ state }) => state.head.created))),
	};
}

/** Removes a volume, unless it is in use. */
async function remove(store: Store, name: string): Promise<void> {
	const release = await store.locks.tryAcquire(store.lockName(slotOf(name)), "exclusive");
	if (!release) {
		throw new InvalidArgumentError(
			"A file of the model is being loaded: wait until that is done, or abort it, and delete it then.",
		);
	}
	try {
		await store.backend.remove(name);
	} finally {
		await release();
	}
}

function ofSource(all: Located[], source: string): Located[] {
	const found = all.filter(({ state }) => state.head.model === source);
	if (found.some(isFile)) return found;
	throw new InvalidArgumentError(
		`Nothing is stored of '${source}'. cache.list() tells the sources of stored models.`,
	);
}

const VERIFY_RULES = { source: ofType("string"), signal: abortSignal, onProgress: ofType("function") };

/**
 * What is stored of models on this device, for this site.
 *
 * @param check checks what is stored for the whole site
 */
export const cacheWith = (check: CheckStored) => ({
	/** The models of which files are stored, also of loads that broke off; the latest first. */
	async list(): Promise<CachedModel[]> {
		const models = new Map<string, Located[]>();
		for (const located of (await locateAll()).filter(isFile)) {
			const { model } = located.state.head;
			models.set(model, [...(models.get(model) ?? []), located]);
		}
		return [...models]
			.map(([source, files]) => describeModel(source, files))
			.sort((a, b) => b.created.getTime() - a.created.getTime());
	},

	/**
	 * Bytes that models take, and, where the browser tells, what this whole site takes and may take, and whether the
	 * browser promised not to evict it.
	 */
	async usage(): Promise<{ models: number; site?: number; quota?: number; isPersistent: boolean }> {
		const models = (await locateAll()).reduce((sum, located) => sum + storedBytes(located), 0);
		const storage = globalThis.navigator?.storage;
		const { usage, quota } = (await storage?.estimate?.().catch(() => undefined)) ?? {};
		const isPersistent = (await storage?.persisted?.().catch(() => false)) ?? false;
		return { models, site: usage, quota, isPersistent };
	},

	/**
	 * Deletes what is stored of a model, named as {@link list} gives its `source`. Loaded models go on working.
	 *
	 * @throws InvalidArgumentError when nothing is stored of it, or it is being loaded
	 */
	async delete(source: string): Promise<void> {
		for (const { store, name } of ofSource(await locateAll(), source)) await remove(store, name);
	},

	/**
	 * Deletes everything that is stored of models.
	 *
	 * @throws InvalidArgumentError when a model is being loaded; the others are deleted
	 */
	async clear(): Promise<void> {
		const results: PromiseSettledResult<void>[] = [];
		for (const store of await allStores()) {
			const names = await store.backend.list();
			results.push(...(await Promise.allSettled(names.map((name) => remove(store, name)))));
		}
		const failed = results.find((result) => result.status === "rejected");
		if (failed) throw failed.reason;
	},

	/**
	 * Reads everything that is stored, or one model's, and tells what is damaged. That is checked at each load too,
	 * and what is damaged is downloaded again.
	 */
	async verify(
		options: {
			source?: string;
			signal?: AbortSignal;
			onProgress?: (progress: { doneBytes: number; totalBytes: number }) => void;
		} = {},
	): Promise<CacheReport> {
		checkOptions("cache.verify", options, VERIFY_RULES);
		const { source, signal, onProgress } = options;
		const all = await locateAll();
		const files = (source === undefined ? all : ofSource(all, source)).filter(isFile);
		const totalBytes = files.reduce((sum, located) => sum + storedBytes(located), 0);
		let doneBytes = 0;
		const onEvent = (bytes: number) => {
			doneBytes += bytes;
			onProgress?.({ doneBytes, totalBytes });
		};
		const damagedIn = async (located: Located[], check: CheckStored) => {
			const names = located.map(({ store, name }) => ({ backend: store.backend.kind, name }));
			const bytes = names.length > 0 ? await check(names, { signal, onEvent }) : [];
			return located.map(({ state: { head } }, i) => ({
				source: head.model,
				file: head.name,
				bytes: bytes[i]!,
			}));
		};
		// What lies in this thread's memory nobody else can see.
		const isHere = ({ store }: Located) => store.backend.kind === "memory";
		const here = await damagedIn(files.filter(isHere), checkHere);
		const there = await damagedIn(
			files.filter((located) => !isHere(located)),
			check,
		);
		const damaged = [...here, ...there].filter(({ bytes }) => bytes > 0);
		return { files: files.length, bytes: totalBytes, damaged };
	},

	/**
	 * The stored files of a model, as `File`s that lie where they are stored and are read from there: to be saved
	 * elsewhere, or loaded.
	 *
	 * @throws InvalidArgumentError when nothing, or not all, is stored of it
	 */
	async export(source: string): Promise<File[]> {
		const files = ofSource(await locateAll(), source).filter(isFile);
		return Promise.all(
			files.map(async ({ store, name, state }) => {
				const { head, completeSize } = state;
				if (completeSize === undefined) {
					throw new InvalidArgumentError(
						`${head.name} is not stored whole: load the model to its end first.`,
					);
				}
				const blob = await store.backend.blob(name, completeSize);
				return new File([blob.slice(0, completeSize)], head.name, { lastModified: head.created });
			}),
		);
	},
});

/** What is stored of models. */
export type Cache = ReturnType<typeof cacheWith>;
