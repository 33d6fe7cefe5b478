// Writes what precedes the weights of a GGUF v3 file: metadata and the list of tensors.

const MAGIC = 0x46554747;
const VERSION = 3;
const TYPE = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 };

/** Where each tensor starts, relative to the end of the header, is a multiple of this. */
export const ALIGNMENT = 32;

/** `size` rounded up to the alignment. */
export const padded = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/** Bytes of growing length. */
class Bytes {
	#parts = [];
	add(size, write) {
		const part = Buffer.alloc(size);
		write(part);
		this.#parts.push(part);
	}
	u32(value) {
		this.add(4, (part) => part.writeUInt32LE(value));
	}
	u64(value) {
		this.add(8, (part) => part.writeBigUInt64LE(BigInt(value)));
	}
	string(text) {
		const part = Buffer.from(text);
		this.u64(part.length);
		this.#parts.push(part);
	}
	value(type, value) {
		if (type === "array") {
			const [elementType, elements] = value;
			this.u32(TYPE[elementType]);
			this.u64(elements.length);
			for (const element of elements) this.value(elementType, element);
		} else if (type === "string") this.string(value);
		else if (type === "f32") this.add(4, (part) => part.writeFloatLE(value));
		else if (type === "bool") this.add(1, (part) => part.writeUInt8(value ? 1 : 0));
		else this.u32(value);
	}
	join() {
		const whole = Buffer.concat(this.#parts);
		return Buffer.concat([whole, Buffer.alloc(padded(whole.length) - whole.length)]);
	}
}

/**
 * The header, padded.
 *
 * @param metadata `[key, type, value]`; an array's value is `[elementType, elements]`
 * @param tensors `{ name, dims, typeId, bytes }` in the order of the file; the first of `dims` is the row's length
 */
export function header(metadata, tensors) {
	const out = new Bytes();
	out.u32(MAGIC);
	out.u32(VERSION);
	out.u64(tensors.length);
	out.u64(metadata.length);
	for (const [key, type, value] of metadata) {
		out.string(key);
		out.u32(TYPE[type]);
		out.value(type, value);
	}
	let offset = 0;
	for (const { name, dims, typeId, bytes } of tensors) {
		out.string(name);
		out.u32(dims.length);
		for (const dim of dims) out.u64(dim);
		out.u32(typeId);
		out.u64(offset);
		offset += padded(bytes);
	}
	return out.join();
}
