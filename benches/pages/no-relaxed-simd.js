// Put before the package's worker to make the engine one that lacks relaxed SIMD, as Safari's does: modules that
// detect features ask `WebAssembly.validate` about a small module with `i8x16.relaxed_swizzle`.
const { validate } = WebAssembly;
WebAssembly.validate = (source) => {
	const bytes = ArrayBuffer.isView(source)
		? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
		: new Uint8Array(source);
	const isRelaxed = (byte, at) => byte === 0xfd && bytes[at + 1] === 0x80 && bytes[at + 2] === 0x02;
	return !bytes.some(isRelaxed) && validate(source);
};
