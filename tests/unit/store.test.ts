// The store of model bytes: what it acknowledges survives crashes, and what is damaged is never given out.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { SternaError } from "../../pkg-template/src/errors.js";
import { Access, type AccessSettings, type AccessWatch } from "../../pkg-template/src/files/access.js";
import { openUrl } from "../../pkg-template/src/files/remote.js";
import type { StorageBackend } from "../../pkg-template/src/store/backend.js";
import { type Checksum, loadChecksum } from "../../pkg-template/src/store/checksum.js";
import { BLOCK, Entry } from "../../pkg-template/src/store/entry.js";
import { fileRecord } from "../../pkg-template/src/store/journal.js";
import { LocalLocks } from "../../pkg-template/src/store/locks.js";
import { MemoryBackend } from "../../pkg-template/src/store/memory.js";
import { Store } from "../../pkg-template/src/store/store.js";
import type { FileRequest } from "../../pkg-template/src/store/stored-file.js";
import type { LoadNotice } from "../../pkg-template/src/types.js";
import { Crash, FakeBackend, FakeDisk } from "../support/fake-disk.js";
import { startServer, type TestServer } from "../support/server.js";

/** Bytes of which every block is another one. */
function bytesOf(size: number, seed = 1): Uint8Array {
	const words = new Uint32Array(Math.ceil(size / 4));
	let state = seed;
	for (let i = 0; i < words.length; i += 1) {
		state = (Math.imul(state, 1664525) + 1013904223) | 0;
		words[i] = state;
	}
	return new Uint8Array(words.buffer, 0, size);
}

const SIZE = 3 * BLOCK + 1234;
const FILE = bytesOf(SIZE);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

let server: TestServer;
let checksum: Checksum;
let url: string;

before(async () => {
	server = await startServer();
	checksum = await loadChecksum();
	url = `${server.origin}/m.gguf`;
});
after(() => server.close());
beforeEach(() => {
	server.reset();
});

const SETTINGS: AccessSettings = {
	model: "test",
	cache: { backend: "auto", revalidate: true, required: false },
	patience: { retries: 3, retryDelay: 5, stallTimeout: 300, checkTimeout: 300, connections: 1 },
	hub: { endpoint: "https://hub.example" },
};

interface Reading {
	request?: Partial<FileRequest>;
	settings?: Partial<AccessSettings>;
	watch?: AccessWatch;
	signal?: AbortSignal;
	locks?: LocalLocks;
}

/** Reads a file through a store. */
async function read(backend: StorageBackend, options: Reading = {}): Promise<Uint8Array> {
	const { request, settings, watch = {}, signal, locks = new LocalLocks() } = options;
	const openStore = async () => new Store(backend, checksum, locks);
	const access = await Access.open({ ...SETTINGS, ...settings }, { fetch, openStore }, watch);
	const file = access.file({ name: "m.gguf", urls: [url], ...request });
	const { pieces } = await file.open(signal);
	const parts: Uint8Array[] = [];
	for await (const piece of pieces) parts.push(piece.slice());
	return Buffer.concat(parts);
}

const same = (found: Uint8Array, wanted = FILE) =>
	assert.ok(Buffer.compare(found, wanted) === 0, "other bytes");

const fails = (promise: Promise<unknown>, code: string, message: RegExp) =>
	assert.rejects(promise, (error: unknown) => {
		assert.ok(error instanceof SternaError, String(error));
		assert.equal(error.code, code);
		assert.match(error.message, message);
		return true;
	});

const good = { body: FILE, ranges: true, headers: { ETag: '"v1"' } };

test("a file is downloaded once, and read from the store afterwards", async () => {
	const backend = new MemoryBackend();
	server.routes.set("/m.gguf", good);
	same(await read(backend));
	same(await read(backend));
	assert.deepEqual(server.requests, ["GET /m.gguf", "HEAD /m.gguf"]);
	same(await read(backend, { settings: { cache: { ...SETTINGS.cache!, revalidate: false } } }));
	assert.equal(server.requests.length, 2);
});

test("an entry survives a crash at any step of any write, with all that was acknowledged", async () => {
	const head = fileRecord({ model: "m", name: "m.gguf", url, etag: '"v1"', size: SIZE, created: 1 });
	const block = (index: number) => FILE.subarray(index * BLOCK, Math.min((index + 1) * BLOCK, SIZE));
	let crashes = 0;
	for (let step = 0; ; step += 1) {
		const disk = new FakeDisk();
		const backend = new FakeBackend(disk);
		const acknowledged = new Set<number>();
		disk.stepsLeft = step;
		let isWhole = false;
		try {
			const entry = await Entry.create("e", await backend.write("e"), checksum, head);
			for (const index of [0, 2, 1, 3]) {
				await entry.write(index, block(index));
				if (index !== 0) continue;
				await entry.commit();
				acknowledged.add(0);
			}
			await entry.commit();
			for (const index of [1, 2, 3]) acknowledged.add(index);
			await entry.finish(SIZE);
			isWhole = true;
		} catch (error) {
			assert.ok(error instanceof Crash, String(error));
			crashes += 1;
		}
		for (let seed = 1; seed <= 8; seed += 1) {
			const copy = disk.clone();
			copy.restart(seed);
			const volume = await new FakeBackend(copy).write("e");
			const entry = await Entry.open("e", volume, checksum, "write");
			for (const index of acknowledged) {
				assert.ok(entry?.has(index), `block ${index} is lost after a crash at step ${step}`);
			}
			if (isWhole) assert.equal(entry?.completeSize, SIZE);
			for (let index = 0; entry && index < 4; index += 1) {
				const found = await entry.read(index);
				if (found) same(found, block(index));
				else assert.ok(!acknowledged.has(index), `block ${index} is damaged after a crash at step ${step}`);
			}
		}
		if (isWhole) break;
	}
	assert.ok(crashes >= 10, `${crashes} crashes`);
});

test("a download survives a crash at any step, and goes on with what is missing", async () => {
	server.routes.set("/m.gguf", good);
	const whole = new FakeDisk();
	same(await read(new FakeBackend(whole)));
	const { steps } = whole;
	assert.ok(steps >= 10, `${steps} steps`);
	for (let step = 0; step < steps; step += 1) {
		const disk = new FakeDisk();
		disk.stepsLeft = step;
		// The store takes a crash for a failing disk, and goes on without it.
		same(await read(new FakeBackend(disk)));
		disk.restart(step);
		same(await read(new FakeBackend(disk)), FILE);
		const before = server.sentBytes;
		same(await read(new FakeBackend(disk)));
		assert.equal(server.sentBytes, before, "the third read needs no network");
	}
});

test("an interrupted download goes on where it broke off", async () => {
	const disk = new FakeDisk();
	server.routes.set("/m.gguf", { ...good, cutAfter: 2 * BLOCK + 5000 });
	const once = { ...SETTINGS.patience, retries: 0 };
	await fails(read(new FakeBackend(disk), { settings: { patience: once } }), "network", /cut after/);
	server.requests.length = 0;
	server.sentBytes = 0;
	server.routes.set("/m.gguf", good);
	same(await read(new FakeBackend(disk)));
	assert.deepEqual(server.requests, [`GET /m.gguf bytes=${2 * BLOCK}-`]);
	assert.equal(server.sentBytes, SIZE - 2 * BLOCK);
});

test("a file that changed while its download was interrupted is downloaded anew", async () => {
	const other = bytesOf(SIZE, 2);
	for (const [changed, start] of [
		[{ body: other, ranges: true, headers: { ETag: '"v2"' } }, 2],
		[{ body: other, headers: { ETag: '"v2"' } }, 2],
		[{ body: other.subarray(0, SIZE - 7), ranges: true, headers: { ETag: '"v1"' } }, 2],
	] as const) {
		const disk = new FakeDisk();
		server.routes.set("/m.gguf", { ...good, cutAfter: start * BLOCK });
		const once = { ...SETTINGS.patience, retries: 0 };
		await fails(read(new FakeBackend(disk), { settings: { patience: once } }), "network", /cut after/);
		server.routes.set("/m.gguf", changed);
		same(await read(new FakeBackend(disk)), changed.body);
		assert.equal((await new FakeBackend(disk).list()).length, 1, "the old version is gone");
	}
});

test("a stored file that changed on the server is replaced, but kept until the new one is there", async () => {
	const backend = new MemoryBackend();
	server.routes.set("/m.gguf", good);
	same(await read(backend));
	const other = bytesOf(SIZE, 3);
	const newer = { body: other, ranges: true, headers: { ETag: '"v2"' } };
	server.routes.set("/m.gguf", ({ method }) => (method === "HEAD" ? newer : { ...newer, silent: true }));
	const notices: LoadNotice[] = [];
	const once = { ...SETTINGS.patience, retries: 0 };
	same(
		await read(backend, {
			settings: { patience: once },
			watch: { onNotice: (notice) => notices.push(notice) },
		}),
	);
	assert.deepEqual(
		notices.map(({ code }) => code),
		["stale"],
	);
	server.routes.set("/m.gguf", newer);
	same(await read(backend), other);
	assert.equal((await backend.list()).length, 1);
	server.routes.clear();
	same(await read(backend), other);
});

test("without the server, stored files are read and absent ones stay absent", async () => {
	const backend = new MemoryBackend();
	server.routes.set("/m.gguf", good);
	same(await read(backend));
	await fails(
		read(backend, { request: { name: "x.json", urls: [`${server.origin}/x.json`] } }),
		"network",
		/404/,
	);
	const offline = async () => {
		throw new TypeError("offline");
	};
	const openStore = async () => new Store(backend, checksum, new LocalLocks());
	const access = await Access.open(SETTINGS, { fetch: offline, openStore }, {});
	const opened = await access.file({ name: "m.gguf", urls: [url] }).open(undefined);
	assert.equal(opened.cachedBytes, SIZE);
	await fails(
		access.file({ name: "x.json", urls: [`${server.origin}/x.json`] }).open(undefined),
		"network",
		/no such file when it was last asked/,
	);
	await fails(
		access.file({ name: "y.json", urls: [`${server.origin}/y.json`] }).open(undefined),
		"network",
		/could not be fetched/,
	);
});

test("a damaged block is noticed and fetched again, alone", async () => {
	const disk = new FakeDisk();
	const backend = new FakeBackend(disk);
	server.routes.set("/m.gguf", good);
	same(await read(backend));
	const [blocks] = disk.names().filter((name) => name.endsWith(".blocks"));
	disk.damage(blocks!, BLOCK + 77);
	server.requests.length = 0;
	server.sentBytes = 0;
	const notices: LoadNotice[] = [];
	same(await read(backend, { watch: { onNotice: (notice) => notices.push(notice) } }));
	assert.deepEqual(server.requests, ["HEAD /m.gguf", `GET /m.gguf bytes=${BLOCK}-${2 * BLOCK - 1}`]);
	assert.equal(server.sentBytes, BLOCK);
	assert.deepEqual(
		notices.map(({ code }) => code),
		["repaired"],
	);
	same(await read(backend));
	assert.equal(server.sentBytes, BLOCK);
});

test("any damaged byte of a journal costs bytes of the download, never right ones", async () => {
	server.routes.set("/m.gguf", good);
	const disk = new FakeDisk();
	same(await read(new FakeBackend(disk)));
	const [journal] = disk.names().filter((name) => name.endsWith(".journal"));
	const { length } = disk.content(journal!);
	for (let at = 0; at < length; at += 13) {
		const copy = disk.clone();
		copy.damage(journal!, at);
		same(await read(new FakeBackend(copy)));
	}
});

test("a full disk ends the storing, not the load, unless storing is required", async () => {
	server.routes.set("/m.gguf", good);
	const whole = new FakeDisk();
	same(await read(new FakeBackend(whole)));
	for (let step = 0; step < whole.steps; step += 1) {
		const disk = new FakeDisk();
		disk.stepsLeft = step;
		disk.failure = () => new DOMException("full", "QuotaExceededError");
		const notices: LoadNotice[] = [];
		same(await read(new FakeBackend(disk), { watch: { onNotice: (notice) => notices.push(notice) } }));
		assert.ok(
			notices.some(({ code }) => code === "quota_exceeded"),
			`step ${step}`,
		);
	}
	const disk = new FakeDisk();
	disk.stepsLeft = 5;
	disk.failure = () => new DOMException("full", "QuotaExceededError");
	const cache = { ...SETTINGS.cache!, required: true };
	await fails(read(new FakeBackend(disk), { settings: { cache } }), "quota_exceeded", /no room/);
});

test("a digest is checked while the file is downloaded, and a wrong file is not kept", async () => {
	const backend = new MemoryBackend();
	server.routes.set("/m.gguf", good);
	const digests = { "m.gguf": sha256(FILE) };
	same(await read(backend, { settings: { digests } }));
	const wrong = { "m.gguf": sha256(FILE.subarray(1)) };
	await fails(
		read(backend, { settings: { digests: wrong } }),
		"integrity_mismatch",
		/not the file that was expected/,
	);
	assert.equal((await backend.list()).length, 1);
	await fails(
		read(backend, { settings: { digests: wrong, cache: undefined } }),
		"integrity_mismatch",
		/SHA-256/,
	);
});

test("a digest lets mirrors continue one another", async () => {
	const disk = new FakeDisk();
	const urls = [`${server.origin}/a.gguf`, `${server.origin}/b.gguf`];
	server.routes.set("/a.gguf", ({ earlier }) =>
		earlier === 0 ? { ...good, cutAfter: BLOCK } : { status: 404 },
	);
	server.routes.set("/b.gguf", { ...good, headers: { ETag: '"of b"' } });
	const notices: LoadNotice[] = [];
	const request = { urls, sha256: sha256(FILE) };
	same(await read(new FakeBackend(disk), { request, watch: { onNotice: (notice) => notices.push(notice) } }));
	assert.deepEqual(
		notices.map(({ code }) => code),
		["retrying", "mirror"],
	);
	assert.equal(server.requests.at(-1), `GET /b.gguf bytes=${BLOCK}-`);
});

test("two readers of one file share one download", async () => {
	const backend = new MemoryBackend();
	const locks = new LocalLocks();
	server.routes.set("/m.gguf", { ...good, slow: { piece: 100_000, delay: 2 } });
	const [one, two] = await Promise.all([read(backend, { locks }), read(backend, { locks })]);
	same(one);
	same(two);
	assert.equal(server.requests.filter((request) => request.startsWith("GET")).length, 1);
});

test("the second reader takes over when the first one is aborted", async () => {
	const disk = new FakeDisk();
	const backend = new FakeBackend(disk);
	const locks = new LocalLocks();
	server.routes.set("/m.gguf", { ...good, slow: { piece: 100_000, delay: 5 } });
	const controller = new AbortController();
	let received = 0;
	const onBytes = (count: number) => {
		received += count;
		if (received > 2 * BLOCK) controller.abort("enough");
	};
	const first = read(backend, { locks, signal: controller.signal, watch: { onBytes } });
	while (server.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
	const second = read(backend, { locks });
	await fails(first, "aborted", /enough/);
	same(await second);
	assert.ok(
		server.requests.some((request) => /bytes=\d+-/.test(request)),
		String(server.requests),
	);
});

test("what was opened to look at it and is not read can be opened again", async () => {
	const backend = new MemoryBackend();
	const locks = new LocalLocks();
	const gguf = bytesOf(2 * BLOCK);
	gguf.set(new TextEncoder().encode("GGUF"));
	server.routes.set("/download", { ...good, body: gguf });
	const openStore = async () => new Store(backend, checksum, locks);
	for (const _ of [1, 2, 3]) {
		const access = await Access.open(SETTINGS, { fetch, openStore }, {});
		const checkpoint = await openUrl([`${server.origin}/download`], access, undefined);
		await checkpoint.close?.();
	}
	const request = { urls: [`${server.origin}/download`] };
	same(await read(backend, { request, locks }), gguf);
});

test("several connections are used where they are faster, and give the same bytes", async () => {
	const backend = new MemoryBackend();
	const large = bytesOf(80 * BLOCK + 99, 7);
	// Each connection gives some 8 MB a second.
	server.routes.set("/large.gguf", { ...good, body: large, slow: { piece: 1 << 17, delay: 15 } });
	const patience = { ...SETTINGS.patience, connections: 4, stallTimeout: 5000 };
	const request = { urls: [`${server.origin}/large.gguf`] };
	same(await read(backend, { request, settings: { patience } }), large);
	assert.ok(server.requests.length >= 2, String(server.requests));
	assert.ok(server.requests.length <= 12, String(server.requests));
	server.requests.length = 0;
	same(await read(backend, { request, settings: { patience } }), large);
	assert.deepEqual(server.requests, ["HEAD /large.gguf"]);
});
