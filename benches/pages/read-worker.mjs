// One thread of `read.mjs`: owns its share of the bytes and reads it when told.
const PAGE_BYTES = 65536;

let exports;
let streamBytes;

async function prepare({ url, bytes }) {
	({ exports } = (await WebAssembly.instantiateStreaming(fetch(url))).instance);
	exports.memory.grow(Math.ceil(bytes / PAGE_BYTES));
	// Memory that was never written is one page of zeros, which the processor's cache would hold.
	new Uint8Array(exports.memory.buffer).fill(1);
	streamBytes = Math.floor(bytes / 128) * 32;
}

self.onmessage = async ({ data }) => {
	if (data.prepare) await prepare(data.prepare);
	else for (let pass = 0; pass < data.passes; pass++) exports.read(streamBytes);
	self.postMessage(4 * streamBytes);
};
