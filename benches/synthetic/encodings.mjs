// The encodings that a synthetic checkpoint can have, each with a way to fill one block at random.

/** xorshift32: small, fast, the same everywhere. */
export function random(seed) {
	let state = seed >>> 0 || 1;
	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state >>> 0;
	};
}

/** The bits of `x` as a 16-bit float, rounded towards zero; what is too small becomes 0. */
function half(x) {
	const [bits] = new Uint32Array(new Float32Array([x]).buffer);
	const exponent = ((bits >> 23) & 0xff) - 112;
	return exponent <= 0 ? 0 : ((bits >> 16) & 0x8000) | (exponent << 10) | ((bits >> 13) & 0x3ff);
}

/** Bytes of the 81 ways to fill four 2-bit fields with 0, 1, 2. */
const TERNARY_BYTES = Uint8Array.from(
	{ length: 81 },
	(_, i) =>
		(i % 3) | ((Math.floor(i / 3) % 3) << 2) | ((Math.floor(i / 9) % 3) << 4) | (Math.floor(i / 27) << 6),
);

function fillTernary(bytes, next) {
	for (let i = 0; i < bytes.length; i++) bytes[i] = TERNARY_BYTES[next() % 81];
}

function fillBytes(bytes, next) {
	for (let i = 0; i < bytes.length; i++) bytes[i] = next();
}

function putHalf(bytes, at, value) {
	new DataView(bytes.buffer, bytes.byteOffset).setUint16(at, half(value), true);
}

/** Ternary codes and their scale; `at` tells where in the block each is. */
const ternaryBlock = (elements, scaleAt, codesAt, vary = (scale) => scale) => ({
	elements,
	bytes: elements / 4 + 2,
	fill(block, next, scale) {
		fillTernary(block.subarray(codesAt, codesAt + elements / 4), next);
		putHalf(block, scaleAt, vary(scale, next));
	},
});

/** Models that were trained with a scale a group have many; those of BitNet have one a tensor, whatever the file. */
const anyScale = (scale, next) => scale * (0.5 + next() / 2 ** 32);

/**
 * `typeId` is GGUF's; `elements` and `bytes` are a block's; `fill(block, next, scale)` makes a random block
 * whose values are about as large as `scale`. `tail` is what follows the blocks of a whole tensor.
 */
export const ENCODINGS = {
	f16: {
		typeId: 1,
		elements: 1,
		bytes: 2,
		fill(block, next, scale) {
			const uniform = () => (next() + 0.5) / 2 ** 32;
			putHalf(block, 0, scale * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()));
		},
	},
	q8_0: {
		typeId: 8,
		elements: 32,
		bytes: 34,
		fill(block, next, scale) {
			fillBytes(block, next);
			putHalf(block, 0, scale / 74);
		},
	},
	q6_k: {
		typeId: 14,
		elements: 256,
		bytes: 210,
		fill(block, next, scale) {
			fillBytes(block, next);
			// The sixteen scales of the block's parts, then the block's own.
			for (let i = 192; i < 208; i++) block[i] = 1 + (next() % 31);
			putHalf(block, 208, scale / 300);
		},
	},
	tq2_0: { typeId: 35, ...ternaryBlock(256, 64, 0) },
	i2_s: {
		typeId: 36,
		elements: 128,
		bytes: 32,
		fill: fillTernary,
		/** The scale of the whole tensor, in 32 bytes of which only the first four are read. */
		tail: (scale) => new Uint8Array(new Float32Array(8).fill(scale).buffer),
	},
	q2_0: { typeId: 42, ...ternaryBlock(128, 0, 2, anyScale) },
	q2_0_g64: { typeId: 42, ...ternaryBlock(64, 0, 2, anyScale) },
};

/** Encodings of ternary weights; the embedding may have any. */
export const TERNARY_FORMATS = ["i2_s", "tq2_0", "q2_0", "q2_0_g64"];

/** Encodings that an embedding can have: I2_S has one scale a tensor, which nobody gives an embedding. */
export const EMBEDDING_FORMATS = ["f16", "q8_0", "q6_k", "q2_0", "q2_0_g64"];

/** The bytes that a tensor of `elements` numbers takes. */
export function tensorBytes(format, elements) {
	const { elements: perBlock, bytes, tail } = ENCODINGS[format];
	return (elements / perBlock) * bytes + (tail?.(1).length ?? 0);
}
